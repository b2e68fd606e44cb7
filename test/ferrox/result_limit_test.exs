defmodule Ferrox.ResultLimitTest do
  # `config :ferrox, max_result_bytes: n`, in VMs that have it when the library is loaded.
  use ExUnit.Case, async: true

  alias Ferrox.ChildVM

  # Evaluates a script with a limit. What it raises is printed by `refused`.
  defp run(limit, script) do
    code = """
    Application.load(:ferrox)

    refused = fn fun ->
      try do
        fun.()
        IO.puts("computed")
      rescue
        error in ArgumentError -> IO.puts(error.message)
      end
    end

    #{script}
    """

    ChildVM.run(code, flags: "-ferrox max_result_bytes #{limit}")
  end

  test "larger results are refused, and name both sizes" do
    script = """
    refused.(fn -> Ferrox.iota({250_000}, type: {:f, 32}) end)
    refused.(fn -> Ferrox.iota({250_001}, type: {:f, 32}) end)
    tall = Ferrox.eye({400, 300}, type: {:f, 64})
    refused.(fn -> Ferrox.LinAlg.qr(tall, mode: :complete) end)
    """

    {output, 0} = run(1_000_000, script)

    assert [
             "computed",
             "iota: a result of type f32 and shape {250001} takes 1000004 bytes, " <>
               "and results may take 1000000 at most",
             "qr: a result of type f64 and shape {400, 400} takes 1280000 bytes" <> _
           ] = String.split(output, "\n", trim: true)
  end

  test "operands may be larger" do
    script = """
    large = Ferrox.from_binary(:binary.copy(<<1>>, 2_000_000), {:u, 8})
    IO.inspect(Ferrox.to_number(Ferrox.sum(large)))
    """

    assert {"2000000\n", 0} = run(1_000_000, script)
  end

  test "programs with larger values are refused when they are compiled" do
    script = """
    value = fn slot, size -> {slot, {:f, 32}, {size}} end

    for size <- [250_000, 250_001] do
      steps = [{:run, {:reverse, [0]}, [value.(0, size)], [value.(1, size)]}]
      steps = steps ++ [{:run, {:reduce, :sum, [0]}, [value.(1, size)], [{2, {:f, 32}, {}}]}]
      regions = [{[{{:f, 32}, {size}}], 3, steps, [{2, {:f, 32}, {}}]}]
      # A call that is written out loads the module when the script is compiled.
      refused.(fn -> apply(Ferrox.Native, :compile, [{regions, []}]) end)
    end
    """

    {output, 0} = run(1_000_000, script)

    assert output ==
             "computed\nprogram: a result of type f32 and shape {250001} takes 1000004 bytes, " <>
               "and results may take 1000000 at most\n"
  end

  test "a limit of another kind is none" do
    for limit <- [0, 999_999, :large] do
      {output, 0} = run(limit, "refused.(fn -> Ferrox.iota({1_000_000}, type: {:f, 32}) end)")

      assert output =~
               "config :ferrox, :max_result_bytes must be an integer from 1000000 on, or :infinity, " <>
                 "got: #{inspect(limit)}; going on with :infinity"

      assert output =~ "computed"
    end
  end
end
