if Code.ensure_loaded?(Nx) do
  defmodule Ferrox.DifferentialCase do
    @moduledoc """
    A test case that compares Ferrox.Backend with the Nx.BinaryBackend that is installed, on random
    data.

    The Nx functions are called with the same tensors on both backends. Elements of the results
    must have the same bits, or differ for one of the reasons of `Ferrox.Differences`.

        FERROX_CASES=100 mix test test/ferrox/differential_test.exs   # a longer run
        FERROX_SEED=1 mix test ...                                     # other data
        FERROX_COMPILED=1 mix test ...                                 # each operation compiled
    """

    use ExUnit.CaseTemplate

    import Ferrox.Bits, only: [bound_size: 1]

    alias Ferrox.Oracle

    using do
      quote do
        import Ferrox.DifferentialCase

        @moduletag :nx
        @moduletag timeout: :infinity
      end
    end

    # The table of the numbers of compared elements outlives the tests.
    setup_all do
      # The data are the same every time, so that a failure comes from a change; a longer run
      # uses new data.
      long = if System.get_env("FERROX_CASES"), do: "#{ExUnit.configuration()[:seed]}", else: "0"
      seed = System.get_env("FERROX_SEED", long)
      {:ok, owner} = Agent.start(fn -> :ets.new(:counts, [:public]) end)
      counts = Agent.get(owner, & &1)

      on_exit(fn ->
        if System.get_env("FERROX_CASES"), do: print(counts, seed)
        Agent.stop(owner)
      end)

      %{seed: String.to_integer(seed), counts: counts}
    end

    defp print(counts, seed) do
      IO.puts("\nElements compared with Nx #{Application.spec(:nx, :vsn)}, seed #{seed}:")

      for {family, rows} <-
            counts |> :ets.tab2list() |> Enum.group_by(fn {{family, _}, _} -> family end) do
        classes = Enum.map_join(rows, ", ", fn {{_, class}, n} -> "#{class} #{n}" end)
        IO.puts("  #{family}: #{rows |> Enum.map(&elem(&1, 1)) |> Enum.sum()} (#{classes})")
      end
    end

    @doc "The number of cases of an operation and its types."
    @spec cases() :: pos_integer
    def cases, do: String.to_integer(System.get_env("FERROX_CASES", "4"))

    @doc "The types of the installed Nx."
    @spec types() :: [Nx.Type.t()]
    def types do
      [s: 2, s: 4, s: 8, s: 16, s: 32, s: 64, u: 2, u: 4, u: 8, u: 16, u: 32, u: 64] ++
        [f: 8, f: 16, bf: 16, f: 32, f: 64, c: 64, c: 128] ++
        if(Code.ensure_loaded?(Nx.Floating), do: [f8_e4m3fn: 8], else: [])
    end

    @doc "The backend that is compared: `Ferrox.Backend`, or `Ferrox.CompiledBackend`."
    @spec backend() :: module
    def backend,
      do: if(System.get_env("FERROX_COMPILED"), do: Ferrox.CompiledBackend, else: Ferrox.Backend)

    @doc "The same tensor on this backend."
    @spec on_ferrox(Nx.Tensor.t()) :: Nx.Tensor.t()
    def on_ferrox(%{data: %{state: state}} = tensor),
      do: %{tensor | data: struct!(backend(), state: state)}

    @doc "The elements of a tensor as numbers."
    @spec values(Nx.Tensor.t()) :: list
    def values(tensor), do: Oracle.decode(tensor.data.state, tensor.type)

    @doc "The elements of some data as bits."
    @spec chunks(bitstring, pos_integer) :: [bitstring]
    def chunks(data, bits), do: for(<<element::bitstring-bound_size(bits) <- data>>, do: element)

    @doc "The result of a function, or the exception that it raises."
    @spec attempt(fun) :: {:ok, term} | {:raised, Exception.t()}
    def attempt(fun) do
      {:ok, fun.()}
    rescue
      error -> {:raised, error}
    end

    @doc "Counts elements of a family of operations that differ for the same reason."
    @spec count(map, atom, atom, pos_integer) :: integer
    def count(context, family, class, n),
      do: :ets.update_counter(context.counts, {family, class}, n, {{family, class}, 0})

    @doc "Keeps a difference for `report/0`, so that the test continues after it."
    @spec fail(map, term, [Nx.Tensor.t()], String.t()) :: term
    def fail(context, call, tensors, problem) do
      operands =
        Enum.map_join(tensors, "\n", fn tensor ->
          "#{inspect(tensor.type)} #{inspect(tensor.shape)} #{inspect(values(tensor), limit: 20)}"
        end)

      failure = "Nx #{inspect(call)}, seed #{context.seed}: #{problem}\n#{operands}"
      Process.put(:failures, [failure | Process.get(:failures, [])])
    end

    @doc "Fails the test if there were differences, and shows the first of them."
    @spec report() :: nil
    def report do
      failures = Enum.reverse(Process.get(:failures, []))

      if failures != [],
        do:
          flunk(
            "#{length(failures)} cases differ\n\n" <>
              Enum.join(Enum.take(failures, 50), "\n\n")
          )
    end
  end
end
