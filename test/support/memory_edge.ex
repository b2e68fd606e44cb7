defmodule Ferrox.MemoryEdge do
  @moduledoc """
  A call of each family that takes memory, for a VM that has almost none left.

  `main/1` runs in a VM of its own.
  """

  alias Ferrox.Native

  @f {:f, 32}
  @d {:f, 64}
  @c {:c, 128}
  @u {:u, 8}
  # Bytes of the largest operand.
  @bytes 16_000_000
  # The type and shape of such an operand.
  @array {@f, {4_000_000}}

  # Families with what is called, given zeros.
  defp cases(data) do
    part = &binary_part(data, 0, &1)
    f32 = {@f, {4_000_000}, data}
    rows = {@f, {4_000, 1_000}, data}
    u8 = {@u, {16_000_000}, data}
    one = {@f, {}, <<0::32>>}
    square = fn type, n -> {type, {n, n}, part.(n * n * div(elem(type, 1), 8))} end
    index = {{:s, 32}, {1_000_000, 1}, part.(4_000_000)}
    image = {@f, {4, 16, 250, 250}, data}
    kernel = {@f, {16, 16, 3, 3}, part.(9_216)}
    both = &[&1, &1]
    axes = [0, 1, 2, 3]
    over = {{3, 3}, [{1, 1}, {1, 1}], [1, 1], [1, 1]}

    [
      binary: fn -> Native.binary(:add, @f, {4_000_000}, f32, f32) end,
      unary: fn -> Native.unary(:exp, @f, f32) end,
      as_type: fn -> Native.as_type(@c, f32) end,
      reduce: fn -> Native.reduce(:sum, {:f, 64}, {4_000}, [1], rows) end,
      reduce_columns: fn -> Native.reduce(:product, {:f, 64}, {1_000}, [0], rows) end,
      arg_reduce: fn -> Native.arg_reduce(:reduce_max, {:s, 64}, {1_000}, 0, :low, rows) end,
      dot: fn ->
        side = {square.(@f, 2_000), [1], []}
        Native.dot(@f, {2_000, 2_000}, side, put_elem(side, 1, [0]))
      end,
      dot_c128: fn ->
        side = {square.(@c, 900), [1], []}
        Native.dot(@c, {900, 900}, side, put_elem(side, 1, [0]))
      end,
      dot_bf16: fn ->
        side = {square.({:bf, 16}, 2_000), [1], []}
        Native.dot({:bf, 16}, {2_000, 2_000}, side, put_elem(side, 1, [0]))
      end,
      conv: fn ->
        options = {both.(1), both.({1, 1}), both.(1), both.(1), {1, 1}, {axes, axes, axes}}
        Native.conv(@f, {4, 16, 250, 250}, image, kernel, options)
      end,
      window: fn -> Native.window(:window_sum, @f, {4_000, 1_000}, over, rows) end,
      window_scatter: fn ->
        Native.window_scatter(:window_scatter_max, @f, over, rows, rows, one)
      end,
      window_elements: fn ->
        windows = {[7], [1], [1], [{0, 0}]}
        Native.window_elements({15_999_994, 7}, windows, u8, {@u, {}, <<0>>})
      end,
      select: fn ->
        Native.select(@f, {4_000_000}, {@u, {4_000_000}, part.(4_000_000)}, f32, one)
      end,
      transpose: fn -> Native.transpose({1_000, 4_000}, [1, 0], rows) end,
      broadcast: fn -> Native.broadcast({4, 4_000_000}, [1], f32) end,
      reverse: fn -> Native.reverse({4_000, 1_000}, [1], rows) end,
      concatenate: fn -> Native.concatenate(@f, {8_000_000}, 0, [f32, f32]) end,
      iota: fn -> Native.iota(@f, {8_000_000}, 0) end,
      eye: fn -> Native.eye(@f, {3_000, 3_000}) end,
      pad: fn -> Native.pad(@f, {4_000, 1_001}, [{0, 0, 0}, {0, 1, 0}], rows, one) end,
      sort: fn -> Native.sort(0, false, rows) end,
      sort_rows: fn -> Native.sort(0, true, f32) end,
      argsort: fn -> Native.argsort({:s, 64}, 0, false, f32) end,
      top_k: fn -> Native.top_k({:s, 32}, {100_000}, f32) end,
      gather: fn -> Native.gather({1_000_000}, [0], f32, index) end,
      indexed: fn ->
        updates = {@f, {1_000_000}, part.(4_000_000)}
        Native.indexed(:indexed_add, @d, [0], f32, index, updates)
      end,
      cumulative: fn -> Native.cumulative(:cumulative_sum, 0, false, rows) end,
      fourier: fn ->
        Native.fourier(:fft, @c, {1_000_000}, [{0, 1_000_000}], 0, {@c, {1_000_000}, data})
      end,
      fourier_prime: fn ->
        Native.fourier(:fft, @c, {999_983}, [{0, 999_983}], 0, {@c, {999_983}, part.(15_999_728)})
      end,
      solve: fn -> Native.solve({true, true, :none}, @d, identity(700), identity(700)) end,
      lu: fn -> factor(:lu, 3, 700) end,
      qr: fn -> factor(:qr, 2, 500) end,
      cholesky: fn -> factor(:cholesky, 1, 1_000) end,
      eigh: fn ->
        Native.factor(:eigh, [{@d, {300}}, {@d, {300, 300}}], 1.0e-10, identity(300))
      end,
      svd: fn ->
        results = [{@d, {300, 300}}, {@d, {300}}, {@d, {300, 300}}]
        Native.factor(:svd, results, 1.0e-10, identity(300))
      end,
      program: fn ->
        sort = {:run, {:sort, 0, false}, [value(0)], [value(1)]}
        steps = [sort, {:run, {:binary, :add}, [value(0), value(1)], [value(2)]}]
        run_program([{[@array], 3, steps, [value(2)]}], [], data)
      end,
      program_equal_results: fn ->
        run_program([{[@array], 2, [to_matrix()], [matrix(1), matrix(1)]}], [], data)
      end,
      program_literal: fn ->
        run_program([{[@array], 1, [], [{-1, @f, {4_000_000}}]}], [data], data)
      end,
      program_while: fn ->
        # While the first element is less than one, one is added and the array is reversed.
        one = {-1, @f, {}}
        first = {:run, {:slice, [0], [1], [1]}, [value(0)], [{1, @f, {1}}]}
        less = {:run, {:binary, :less}, [{1, @f, {1}}, one], [{2, @u, {1}}]}
        all = {:run, {:reduce, :all, [0]}, [{2, @u, {1}}], [{3, @u, {}}]}
        condition = {[@array], 4, [first, less, all], [{3, @u, {}}]}
        add = {:run, {:binary, :add}, [value(0), one], [value(2)]}
        body = {[@array], 3, [add, reverse(2)], [value(1)]}
        loop = {:while, 1, 2, [value(0)], [1]}
        regions = [{[@array], 2, [loop], [value(1)]}, condition, body]
        run_program(regions, [<<1.0::float-32-native>>], data)
      end,
      program_call: fn ->
        steps = [to_matrix(), {:call, 0, [matrix(1)], [value(2)]}]
        program = program([{[@array], 3, steps, [matrix(1), value(2)]}], [])
        {:call, run, 0, [_]} = Native.run(program, {data})
        Native.resume(program, run, {data}, [data])
      end
    ]
  end

  defp value(slot), do: {slot, @f, {4_000_000}}

  # A matrix in a slot, too large for the memory that a thread has of its own, and the step that writes
  # one into slot 1.
  defp matrix(slot), do: {slot, @f, {3, 4_000_000}}
  defp to_matrix, do: {:run, {:broadcast, [1]}, [value(0)], [matrix(1)]}

  # A step that reverses the value of a slot into slot 1.
  defp reverse(slot), do: {:run, {:reverse, [0]}, [value(slot)], [value(1)]}

  defp program(regions, literals), do: Native.compile({regions, literals})

  defp run_program(regions, literals, data),
    do: Native.run(program(regions, literals), {data})

  defp identity(n), do: {@d, {n, n}, Native.eye(@d, {n, n})}

  defp factor(op, count, n),
    do: Native.factor(op, List.duplicate({@d, {n, n}}, count), 1.0e-10, identity(n))

  @doc "The names of the families."
  def names, do: for({name, _} <- cases(:binary.copy(<<0>>, @bytes)), do: name)

  @doc """
  Calls families, and prints before each its name and after each what it gave.

  First the address space of the VM in MB, with the operands.
  """
  def main(names) do
    cases = cases(:binary.copy(<<0>>, @bytes))
    # What is only allocated once: threads, code.
    zeros = :binary.copy(<<0>>, 160_000)
    Native.matmul(@f, {200, 200}, {1, 200, 200, 200}, zeros, zeros)
    [_, kb] = Regex.run(~r/VmSize:\s+(\d+) kB/, File.read!("/proc/self/status"))
    IO.puts("size #{div(String.to_integer(kb), 1_000)}")

    for name <- names do
      IO.puts("begin #{name}")
      # A process of its own, whose memory is free after it.
      {pid, monitor} = spawn_monitor(fn -> exit({:answer, outcome(cases[name])}) end)

      receive do
        {:DOWN, ^monitor, _, ^pid, {:answer, outcome}} -> IO.puts("end #{name}: #{outcome}")
      end

      :erlang.garbage_collect()
    end
  end

  defp outcome(fun) do
    fun.()
    "computed"
  rescue
    error in ArgumentError -> "refused: #{Exception.message(error)}"
    error in SystemLimitError -> "refused: #{Exception.message(error)}"
  end
end
