# Windows of the sizes that pooling and smoothing have: on Ferrox beside NumPy's
# sliding_window_view, round by round in one run, and small ones through Nx beside
# Nx.BinaryBackend. Answers are checked before times.
#
#     MIX_ENV=prod mix run bench/window.exs

Code.require_file("measure.exs", __DIR__)

defmodule Bench.Window do
  @rounds 7

  # Name, operation, shape, window, strides.
  @cases [
    {"max, 112x112x64, 2x2 by 2", :window_max, {1, 64, 112, 112}, {1, 1, 2, 2}, [1, 1, 2, 2]},
    {"max, the same, channels last", :window_max, {1, 112, 112, 64}, {1, 2, 2, 1}, [1, 2, 2, 1]},
    {"max, 112x112x64, 3x3 by 2", :window_max, {1, 64, 112, 112}, {1, 1, 3, 3}, [1, 1, 2, 2]},
    {"sum, 7x7 of 7x7x512", :window_sum, {1, 512, 7, 7}, {1, 1, 7, 7}, [1, 1, 1, 1]},
    {"sum, 1000x1000, 3x3", :window_sum, {1000, 1000}, {3, 3}, [1, 1]},
    {"max, 1000x1000, 15x15", :window_max, {1000, 1000}, {15, 15}, [1, 1]},
    {"min, 1,000,000, 101", :window_min, {1_000_000}, {101}, [1]},
    {"sum, 1,000,000, 1001", :window_sum, {1_000_000}, {1001}, [1]}
  ]

  def run do
    if Code.ensure_loaded?(Nx), do: small(), else: IO.puts("Nx isn't there")
    large(Bench.peer())
  end

  defp large(peer) do
    IO.puts("\nf32, ms (median of #{@rounds} rounds)#{peer && ", beside " <> peer.name}\n")
    IO.puts(String.duplicate(" ", 40) <> "Ferrox       NumPy       ratio")

    for {name, op, shape, window, strides} <- @cases do
      # Whole numbers, so that every sum is exact.
      tensor = Bench.scrambled(shape)
      {ours, result} = on_ferrox(op, tensor, window, strides)
      count = max(trunc(0.05 / Bench.time_once(ours)), 1) |> min(2000)

      if peer do
        on_peer(peer, op, shape, window, strides)
        Bench.check!(peer, "fold()", %{tensor | shape: result, data: ours.()})
      end

      times = Bench.medians_beside(@rounds, peer, {ours, count}, {"fold()", 1})
      Bench.times_row(name, times, 1.0e3)
    end
  end

  defp on_ferrox(op, tensor, window, strides) do
    result =
      [tensor.shape, window, List.to_tuple(strides)]
      |> Enum.map(&Tuple.to_list/1)
      |> Enum.zip_with(fn [dim, size, stride] -> div(dim - size, stride) + 1 end)
      |> List.to_tuple()

    rank = tuple_size(window)
    over = {window, List.duplicate({0, 0}, rank), strides, List.duplicate(1, rank)}
    operand = {tensor.type, tensor.shape, tensor.data}
    {fn -> Ferrox.Native.window(op, tensor.type, result, over, operand) end, result}
  end

  defp on_peer(peer, op, shape, window, strides) do
    steps = Enum.map_join(strides, ", ", &"::#{&1}")
    axes = Enum.map_join(1..length(strides), ", ", &"-#{&1}")
    Bench.setup(peer, "a = #{Bench.numpy_scrambled(shape)}")
    view = "np.lib.stride_tricks.sliding_window_view(a, (#{Bench.dims(window)},))[#{steps}]"
    "window_" <> fold = Atom.to_string(op)
    Bench.setup(peer, "fold = lambda: #{view}.#{fold}((#{axes},))")
  end

  defp small do
    IO.puts("Through Nx, us, beside Nx.BinaryBackend:\n")
    IO.puts(String.duplicate(" ", 40) <> "Ferrox BinaryBackend   ratio")

    for {name, op, shape, window, opts} <- [
          {"sum, 1 element", :window_sum, {1}, {1}, []},
          {"max, 4x4, 2x2", :window_max, {4, 4}, {2, 2}, []},
          {"sum, 32x32, 3x3", :window_sum, {32, 32}, {3, 3}, [padding: :same]},
          {"product, 1,000, 5", :window_product, {1000}, {5}, [padding: :same]},
          {"max, 32x32, 2x2 by 2", :window_max, {32, 32}, {2, 2}, [strides: [2, 2]]},
          {"min, 32x32, 9x9", :window_min, {32, 32}, {9, 9}, [padding: :same]},
          {"scatter max, 4x4, 2x2", :window_scatter_max, {4, 4}, {2, 2}, [strides: [2, 2]]},
          {"scatter max, 32x32, 2x2", :window_scatter_max, {32, 32}, {2, 2}, [strides: [2, 2]]}
        ] do
      [{theirs, expected}, {ours, got}] =
        for backend <- [Nx.BinaryBackend, Ferrox.Backend] do
          numbers = &(&1 |> Bench.scrambled() |> Ferrox.to_nx() |> Nx.backend_copy(backend))
          tensor = numbers.(shape)
          halves = shape |> Tuple.to_list() |> Enum.map(&div(&1, 2)) |> List.to_tuple()
          zero = Nx.tensor(0.0, backend: backend)
          scatter? = op == :window_scatter_max
          operands = if scatter?, do: [tensor, numbers.(halves), zero], else: [tensor]
          call = fn -> apply(Nx, op, operands ++ [window, opts]) end
          {call, Nx.to_binary(call.())}
        end

      if expected != got, do: raise("the answers differ: #{name}")
      Bench.binary_backend_row(name, ours, theirs)
    end
  end
end

Bench.Window.run()
