defmodule Ferrox.NativeHostileTest do
  # Every NIF with terms that no caller of this project makes. FERROX_FUZZ is the number of minutes;
  # without it, a fixed seed gives a few seconds.
  use ExUnit.Case, async: true

  alias Ferrox.{ChildVM, Native, NativeFuzz, NativePrograms}

  @decoder Path.expand("../../native/ferrox_nif/src/graph/decode.rs", __DIR__)

  test "every NIF is attacked" do
    Code.ensure_loaded!(Native)
    assert Enum.sort(NativeFuzz.nifs()) == Enum.sort(Native.module_info(:nifs))
  end

  test "every operation of programs is attacked" do
    [_, operations] = String.split(File.read!(@decoder), "fn operation(")

    names =
      for [_, name] <- Regex.scan(~r/^        \("(\w+)", &\[/m, operations),
          do: String.to_atom(name)

    assert length(names) > 30
    assert Enum.sort(names) == Enum.sort(NativePrograms.operations())
  end

  test "valid calls are answered" do
    for {name, arguments} <- NativeFuzz.calls() do
      answer = apply(Native, name, arguments)
      refute match?({:error, _}, answer), "#{name}: #{inspect(answer)}"
    end
  end

  @tag timeout: :infinity
  test "hostile terms are refused or computed" do
    {seed, kind, count} =
      case System.get_env("FERROX_FUZZ") do
        nil ->
          {{40, 2, 1}, :rounds, 300}

        minutes ->
          {{:erlang.phash2(System.os_time()), 2, 1}, :minutes, String.to_integer(minutes)}
      end

    path = Path.join(System.tmp_dir!(), "ferrox_fuzz_#{System.pid()}")
    script = "Ferrox.NativeFuzz.main(#{inspect([seed, kind, count, path])})"

    {output, status} =
      ChildVM.run("Logger.configure(level: :error); " <> script,
        memory: 6_000,
        flags: "+S 2:2 +SDcpu 2:2"
      )

    last = NativeFuzz.last_call(path)
    File.rm(path)

    about =
      "seed #{inspect(seed)}, status #{status}, the last call: #{inspect(last, limit: :infinity)}"

    assert {status, output =~ ~r/^done: \d+ calls, \d+ programs$/m} == {0, true},
           "#{output}\n#{about}"

    refute output =~ ~r/^fault:/m, "#{output}\n#{about}"
  end
end
