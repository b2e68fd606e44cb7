if Code.ensure_loaded?(Nx.Defn) do
  defmodule Ferrox.Defn.DifferentialTest do
    # Random functions, compiled, against Nx's evaluator on Ferrox.Backend: the same bits but for NaN, the same
    # types, shapes and containers, the same side effects in the same order, and the same errors.
    use ExUnit.Case, async: true

    alias Ferrox.{DefnOperations, DefnPrograms}

    @moduletag :nx
    # The compiler warns that one function is compiled for many captured programs.
    @moduletag :capture_log
    @programs String.to_integer(System.get_env("FERROX_CASES", "800"))
    @first String.to_integer(System.get_env("FERROX_SEED", "1"))

    setup do
      Nx.default_backend(Ferrox.Backend)
      :ok
    end

    @tag timeout: :infinity
    test "random programs have the bits of the evaluator" do
      counts =
        for seed <- @first..(@first + @programs - 1) do
          {program, inputs} = DefnPrograms.random(seed, 2 + rem(seed, 13))

          if difference(program, inputs) do
            program = smallest(program, inputs)
            {compiled, evaluated} = difference(program, inputs)

            flunk("""
            program #{seed}: #{inspect(program, limit: :infinity, pretty: true)}
            of #{inspect(inputs)}
            compiled: #{inspect(compiled)}
            evaluated: #{inspect(evaluated)}
            """)
          end

          elem(evaluate(program, inputs), 0)
        end

      if @programs > 800, do: IO.puts("programs: #{inspect(Enum.frequencies(counts))}")

      # Most programs have a result, and some raise.
      assert Enum.count(counts, &(&1 == :ok)) > div(@programs, 2)
    end

    # Which none would be if its arguments were drawn wrongly: programs leave out what raises.
    test "programs may have each operation" do
      inputs = {Nx.tensor([0.5, 1.0, 2.0]), Nx.iota({4, 3}), Nx.iota({2, 4, 3}, type: :f64), 3}

      for operation <- DefnOperations.all() do
        programs = for seed <- 1..100, do: {[{operation, seed, []}], 1, seed, true}
        program = Enum.find(programs, &(elem(evaluate(&1, inputs), 0) == :ok))
        assert program, "#{inspect(operation)} raises"
        refute difference(program, inputs), "#{inspect(operation)} has other results"
      end
    end

    # The outcomes where they differ.
    defp difference(program, inputs) do
      compiled = outcome(program, inputs, compiler: Ferrox, fallback: :raise)

      compiled =
        if changes_types?(compiled),
          do: outcome(program, inputs, compiler: Ferrox),
          else: compiled

      evaluated = evaluate(program, inputs)

      if compiled != evaluated and numbers(compiled) !== numbers(evaluated),
        do: {compiled, evaluated}
    end

    # A program with as few steps as possible that still differs.
    defp smallest(program, inputs) do
      case Enum.find(DefnPrograms.smaller(program), &difference(&1, inputs)) do
        nil -> program
        smaller -> smallest(smaller, inputs)
      end
    end

    defp evaluate(program, inputs), do: outcome(program, inputs, compiler: Nx.Defn.Evaluator)

    # Some gradients of loops over integers that Nx writes have values of other types after a trip: only the
    # evaluator, which doesn't look at types, takes them.
    defp changes_types?({:error, ArgumentError, message, _hooks}),
      do: message =~ "values have other types or shapes after a trip"

    defp changes_types?(_outcome), do: false

    # The result with its bits, or the exception.
    defp outcome(program, inputs, opts) do
      fun = &DefnPrograms.run(program, &1)
      {:ok, Nx.Defn.jit_apply(fun, [inputs], opts), hooks()}
    rescue
      exception ->
        {:error, exception.__struct__,
         String.replace(Exception.message(exception), ~r/#Reference<[^>]*>/, ""), hooks()}
    end

    # The outcome with numbers in place of tensors: the bits of a NaN are those of one operand or the
    # other, which depends on where in a vector an element is.
    defp numbers({:ok, result, hooks}), do: {:ok, numbers_of(result), numbers_of_all(hooks)}

    defp numbers({:error, module, message, hooks}),
      do: {:error, module, message, numbers_of_all(hooks)}

    defp numbers_of_all(hooks), do: for({name, tensor} <- hooks, do: {name, numbers_of(tensor)})

    defp numbers_of(container) do
      Nx.Defn.Composite.traverse(container, fn tensor ->
        %{tensor | data: Nx.to_flat_list(Nx.devectorize(tensor))}
      end)
    end

    # What the hooks were given, in order, each value once: the evaluator calls a hook again where what it
    # is given is also a value of a loop around.
    defp hooks(given \\ []) do
      receive do
        {name, tensor} when is_integer(name) -> hooks([{name, tensor} | given])
      after
        0 ->
          given
          |> Enum.reverse()
          |> Enum.uniq_by(fn {name, tensor} -> {name, numbers_of(tensor)} end)
      end
    end
  end
end
