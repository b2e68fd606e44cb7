# Convolutions of the sizes that networks have: on Ferrox beside NumPy's (patches by
# sliding_window_view, then a product of matrices), round by round in one run, and
# small ones through Nx beside Nx.BinaryBackend. Answers are checked before times.
#
#     MIX_ENV=prod mix run bench/conv.exs

Code.require_file("measure.exs", __DIR__)

defmodule Bench.Conv do
  @rounds 7

  # Name, input and kernel in Nx's order, strides, padding, feature groups.
  @layers [
    {"28x28x1, 3x3, 32 filters", {1, 1, 28, 28}, {32, 1, 3, 3}, 1, 1, 1},
    {"the same, batch of 32", {32, 1, 28, 28}, {32, 1, 3, 3}, 1, 1, 1},
    {"224x224x3, 7x7 by 2, 64 filters", {1, 3, 224, 224}, {64, 3, 7, 7}, 2, 3, 1},
    {"56x56x64, 3x3, 64 filters", {1, 64, 56, 56}, {64, 64, 3, 3}, 1, 1, 1},
    {"the same, batch of 8", {8, 64, 56, 56}, {64, 64, 3, 3}, 1, 1, 1},
    {"14x14x256, 1x1, 256 filters", {1, 256, 14, 14}, {256, 256, 1, 1}, 1, 0, 1},
    {"56x56x64, 3x3 by 2, 128 filters", {1, 64, 56, 56}, {128, 64, 3, 3}, 2, 1, 1},
    {"112x112x32, 3x3, depthwise", {1, 32, 112, 112}, {32, 1, 3, 3}, 1, 1, 32},
    {"224x224x64, 3x3, 64 filters", {1, 64, 224, 224}, {64, 64, 3, 3}, 1, 1, 1}
  ]

  def run do
    if Code.ensure_loaded?(Nx), do: small(), else: IO.puts("Nx isn't there")
    large(Bench.peer())
  end

  # Numbers without an order, the same on both sides.
  defp numbers(shape),
    do: shape |> Bench.scrambled() |> Ferrox.divide(1009) |> Ferrox.subtract(0.5)

  defp on_peer(peer, name, shape) do
    numbers = "#{Bench.numpy_scrambled(shape)} / np.float32(1009) - np.float32(0.5)"
    Bench.setup(peer, "#{name} = #{numbers}")
  end

  defp conv(input, kernel, stride, padding, groups) do
    {batch, _, h, w} = input.shape
    {filters, _, kh, kw} = kernel.shape
    [h, w] = for {dim, k} <- [{h, kh}, {w, kw}], do: div(dim + 2 * padding - k, stride) + 1
    shape = {batch, filters, h, w}
    axes = [0, 1, 2, 3]
    both = &[&1, &1]

    options =
      {both.(stride), both.({padding, padding}), both.(1), both.(1), {groups, 1},
       {axes, axes, axes}}

    {input, kernel} = {operand(input), operand(kernel)}
    fn -> Ferrox.Native.conv({:f, 32}, shape, input, kernel, options) end
  end

  defp operand(t), do: {t.type, t.shape, t.data}

  defp large(peer) do
    IO.puts("\nf32, ms (median of #{@rounds} rounds)#{peer && ", beside " <> peer.name}\n")
    IO.puts(String.duplicate(" ", 40) <> "Ferrox       NumPy       ratio     GFLOP/s")

    for {name, input_shape, kernel_shape, stride, padding, groups} <- @layers do
      {input, kernel} = {numbers(input_shape), numbers(kernel_shape)}
      ours = conv(input, kernel, stride, padding, groups)

      flops =
        2 * div(byte_size(ours.()), 4) * div(Tuple.product(kernel_shape), elem(kernel_shape, 0))

      count = max(div(2_000_000_000, flops), 1) |> min(2000)

      if peer do
        on_peer(peer, "x", input_shape)
        on_peer(peer, "k", kernel_shape)
        Bench.setup(peer, numpy(stride, padding, groups))
        check!(peer, ours.())
      end

      columns =
        case Bench.medians_beside(@rounds, peer, {ours, count}, {"r = conv(x, k)", count}) do
          [a, b] -> [a * 1.0e3, b * 1.0e3, b / a, flops / a / 1.0e9]
          [a] -> [a * 1.0e3, 0, 0, flops / a / 1.0e9]
        end

      Bench.row(name, columns)
    end
  end

  # One line, since the peer reads lines.
  defp numpy(stride, padding, 1) do
    "conv = lambda x, k: np.ascontiguousarray(np.tensordot(" <>
      windows(stride, padding) <> ", k, ((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2))"
  end

  # Depthwise.
  defp numpy(stride, padding, _groups),
    do:
      "conv = lambda x, k: np.einsum('nchwij,cij->nchw', #{windows(stride, padding)}, k[:, 0], optimize=True)"

  defp windows(stride, p) do
    "np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (#{p}, #{p}), (#{p}, #{p}))), k.shape[2:], (2, 3))[:, :, ::#{stride}, ::#{stride}]"
  end

  # In another order, so close but not the same.
  defp check!(peer, data) do
    path = Path.join(System.tmp_dir!(), "ferrox_bench_conv_#{System.pid()}")
    File.write!(path, data)
    Bench.setup(peer, "r = conv(x, k).ravel(); f = np.fromfile('#{path}', np.float32)")
    error = Bench.value(peer, "float(np.abs(r - f).max() / np.abs(r).max())")
    File.rm!(path)
    if String.to_float(error) > 1.0e-5, do: raise("the answers differ by #{error}")
  end

  defp small do
    IO.puts("Through Nx, us, beside Nx.BinaryBackend:\n")
    IO.puts("                                        Ferrox  BinaryBackend     ratio")

    for {name, input, kernel, opts} <- [
          {"1x1x1, a place", {1, 1, 1}, {1, 1, 1}, []},
          {"8 elements, 3 places", {1, 1, 8}, {1, 1, 3}, []},
          {"1,000 elements, 3 places", {1, 1, 1000}, {1, 1, 3}, []},
          {"32x32, 3x3, 2 filters", {1, 1, 32, 32}, {2, 1, 3, 3}, [padding: :same]},
          {"32x32x4, 3x3, depthwise", {1, 4, 32, 32}, {4, 1, 3, 3}, [feature_group_size: 4]}
        ] do
      [binary, ferrox] =
        for backend <- [Nx.BinaryBackend, Ferrox.Backend] do
          [x, k] =
            for shape <- [input, kernel],
                do: shape |> numbers() |> Ferrox.to_nx() |> Nx.backend_copy(backend)

          fn -> Nx.conv(x, k, opts) end
        end

      expected = Nx.to_flat_list(binary.())
      got = Nx.to_flat_list(ferrox.())
      true = Enum.zip(expected, got) |> Enum.all?(fn {a, b} -> abs(a - b) < 1.0e-5 end)
      Bench.binary_backend_row(name, ferrox, binary)
    end
  end
end

Bench.Conv.run()
