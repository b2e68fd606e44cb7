# Fourier transforms beside NumPy's, round by round in one run: answers first.
#
#     MIX_ENV=prod mix run bench/fft.exs
#
# NumPy is taken from the `python3` on the PATH, or from PYTHON. Its transforms of
# single precision are computed in single precision, and so less accurate.

Code.require_file("measure.exs", __DIR__)

defmodule Bench.FFT do
  @rounds 7
  @shapes [{16}, {1_000}, {1_024}, {1_009}, {65_536}, {1_000_000}, {1_000, 64}, {64, 1_000}]

  def run do
    Nx.default_backend(Ferrox.Backend)
    peer = Bench.peer() || raise "NumPy isn't there: nothing to compare with"
    IO.puts("us a transform along the last axis, beside #{peer.name}:\n")
    IO.puts("                                            Ferrox       NumPy NumPy/Ferrox")

    for type <- [:f32, :c64, :f64, :c128], shape <- @shapes, do: compare(peer, type, shape)
  end

  defp compare(peer, type, shape) do
    size = Tuple.product(shape)

    a =
      Nx.iota(shape, type: :f64)
      |> Nx.multiply(Nx.tensor(0.7, type: :f64))
      |> Nx.sin()
      |> Nx.as_type(type)

    dtype = %{f32: "float32", c64: "complex64", f64: "float64", c128: "complex128"}[type]

    Bench.setup(
      peer,
      "a = np.sin(np.arange(#{size}) * 0.7).reshape(#{Bench.dims(shape)}).astype(np.#{dtype})"
    )

    Bench.setup(peer, "norm = np.linalg.norm(np.fft.fft(a.astype(np.complex128)))")

    flat = Nx.reshape(Nx.fft(a), {size})
    scale = number(peer, "float(norm)")
    bound = if type in [:f32, :c64], do: 1.0e-6, else: 1.0e-13

    for k <- [0, 1, div(size, 3), size - 1] do
      [%{re: re, im: im}] = flat |> Nx.slice([k], [1]) |> Nx.to_flat_list()

      for {part, got} <- [real: re, imag: im] do
        expected =
          number(peer, "float(np.fft.fft(a.astype(np.complex128)).ravel()[#{k}].#{part})")

        unless abs(got - expected) <= bound * scale,
          do: raise("element #{k} of #{type} #{inspect(shape)} is #{got}, not #{expected}")
      end
    end

    count = max(div(4_000_000, size), 2) |> min(20_000)

    ours = {fn -> Nx.fft(a) end, count}
    times = Bench.medians_beside(@rounds, peer, ours, {"np.fft.fft(a)", count})
    Bench.times_row("#{type} #{inspect(shape)}", times, 1.0e6)
  end

  defp number(peer, expression) do
    {number, ""} = Float.parse(Bench.value(peer, expression))
    number
  end
end

Bench.FFT.run()
