if Code.ensure_loaded?(Nx) do
  defmodule Ferrox.NxDoctestTest do
    # Nx's own doctests, run on Ferrox.Backend.
    #
    # ExUnit can leave out functions, not single doctests. So the functions below
    # are left out of the tests that `doctest` makes, and the last test runs all
    # of their doctests too: each of them passes, or fails because of a callback
    # that it is listed under, and one of each function's does fail.
    use ExUnit.Case, async: false

    @moduletag :nx

    # What is missing, and whose doctests need it, in Nx 0.13.1 or in 0.9.2.
    # Whoever adds a callback to the backend deletes its entry here.
    @missing %{
      "fft/3" => %{Nx => [fft2: 2, fft: 2, rfft: 2]},
      "ifft/3" => %{Nx => [ifft2: 2, ifft: 2, irfft: 2]},
      "lu/3" => %{Nx.LinAlg => [determinant: 1, invert: 1, lu: 2]},
      "triangular_solve/4" => %{
        Nx.LinAlg => [invert: 1, matrix_power: 2, solve: 2, triangular_solve: 3]
      }
    }

    @modules [Nx, Nx.LinAlg, Nx.Random]

    # Of a module, those that this version of Nx has.
    left_out = fn module ->
      {_, _, _, _, _, _, docs} = Code.fetch_docs(module)
      there = for {{:function, name, arity}, _, _, %{}, _} <- docs, do: {name, arity}

      for({_callback, modules} <- @missing, {^module, functions} <- modules, do: functions)
      |> Enum.concat()
      |> Enum.uniq()
      |> Enum.filter(&(&1 == :moduledoc or &1 in there))
    end

    @left_out Map.new(@modules, &{&1, left_out.(&1)})

    setup do
      Nx.default_backend(Ferrox.Backend)
      :ok
    end

    for module <- @modules do
      doctest module, except: @left_out[module]
    end

    test "of the functions left out, only what needs a missing callback fails" do
      {:ok, modules} = unregistered()

      results =
        for {module, test} <- modules do
          {function(test), outcome(module, test)}
        end

      unexpected =
        for {function, {:failed, message}} <- results,
            missing(message) not in reasons(function) do
          "#{inspect(function)} fails for another reason than #{inspect(reasons(function))}:\n#{message}"
        end

      assert unexpected == [], Enum.join(unexpected, "\n\n")

      needless =
        for {function, outcomes} <- Enum.group_by(results, &elem(&1, 0), &elem(&1, 1)),
            Enum.all?(outcomes, &(&1 == :passed)),
            do: function

      assert needless == [], "these pass now, and need not be left out: #{inspect(needless)}"
    end

    test "what is listed as missing is missing" do
      for {callback, _} <- @missing do
        [name, arity] = String.split(callback, "/")
        args = List.duplicate(nil, String.to_integer(arity))

        assert_raise RuntimeError, ~r/does not support Nx.Backend.#{name}\/#{arity} yet/, fn ->
          apply(Ferrox.Backend, String.to_atom(name), args)
        end
      end
    end

    # Modules of the doctests left out, not run by ExUnit, as `{module, test}`.
    # They are compiled here because compiling them may warn of deprecations.
    defp unregistered do
      {modules, _diagnostics} =
        Code.with_diagnostics(fn ->
          for {module, only} <- @left_out do
            name = Module.concat(__MODULE__, "LeftOut#{inspect(module)}")

            contents =
              quote do
                use ExUnit.Case, register: false
                doctest unquote(module), only: unquote(Macro.escape(only))
              end

            Module.create(name, contents, Macro.Env.location(__ENV__))
            for test <- name.__ex_unit__().tests, do: {name, test.name}
          end
        end)

      {:ok, Enum.concat(modules)}
    end

    defp outcome(module, test) do
      apply(module, test, [%{}])
      :passed
    rescue
      error -> {:failed, Exception.message(error)}
    end

    # "doctest Nx.add/2 (12)" is of {Nx, {:add, 2}}.
    defp function(test) do
      case String.split(Atom.to_string(test)) do
        ["doctest", "module", module | _] ->
          {Module.concat([module]), :moduledoc}

        ["doctest", function | _] ->
          [path, arity] = String.split(function, "/")
          {module, [name]} = path |> String.split(".") |> Enum.split(-1)
          {Module.concat(module), {String.to_atom(name), String.to_integer(arity)}}
      end
    end

    defp reasons({module, function}) do
      for {callback, modules} <- @missing,
          {^module, functions} <- modules,
          function in functions,
          do: callback
    end

    defp missing(message) do
      case Regex.run(~r/does not support Nx\.Backend\.(\S+) yet/, message) do
        [_, callback] -> callback
        nil -> nil
      end
    end
  end
end
