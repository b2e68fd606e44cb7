# The calls that a case of cases.exs stands for.

defmodule Bench.Calls do
  @compile {:no_warn_undefined, [Nx, Nx.Defn]}

  alias Bench.Cases

  @doc "Whether Ferrox can make the call of a case, with Nx or without."
  # Without Nx, what only the backend has is called by its native function, if at all.
  def ferrox?(%{call: {kind, _}}, nx?) when kind in [:nx, :defn], do: nx?
  def ferrox?(_row, _nx?), do: true

  @doc """
  A function without arguments that makes the call of a case on Ferrox: through Nx if `nx?`, whole
  programs with the option `math`.
  """
  def ferrox({:nx, fun, _}, given, %{nx?: true} = run), do: ferrox({:nx, fun}, given, run)

  def ferrox({:defn, fun}, given, %{nx?: true} = run), do: defn(fun, given, options(:ferrox, run))

  def ferrox({:nx, fun}, given, _run), do: call(fun, Enum.map(given, &Ferrox.to_nx/1))

  def ferrox({:nx, _, {results, fun}}, given, _run) do
    results = for {type, shape} <- results, do: {Cases.type(type), shape}
    native = call(fun, for(t <- given, do: {t.type, t.shape, t.data}))
    fn -> tensors(native.(), results) end
  end

  def ferrox(call, given, _run), do: direct(Ferrox, call, given)

  @doc """
  Ferrox's calls of the cases of some groups with at most so much work and so many elements, each with its
  group and its case. Cases share their inputs.
  """
  def of_cases(groups, max_work, max_elements) do
    nx? = Code.ensure_loaded?(Nx)

    for group <- groups,
        row <- Cases.rows(group),
        row.work <= max_work and row.elements <= max_elements,
        ferrox?(row, nx?) do
      given = for {{_, spec}, seed} <- Enum.with_index(row.inputs, 1), do: input(spec, seed)
      {group, row, ferrox(row.call, given, %{nx?: nx?, math: :exact})}
    end
  end

  defp input(spec, seed) do
    with nil <- Process.get({spec, seed}) do
      tensor = Cases.input(spec, seed)
      Process.put({spec, seed}, tensor)
      tensor
    end
  end

  defp tensors(data, results) do
    for {data, {type, shape}} <- Enum.zip(results(data), results),
        do: %Ferrox.Tensor{data: data, type: type, shape: shape}
  end

  @doc "The same function of a whole program by Nx's evaluator on Ferrox.Backend; nil of other cases."
  def evaluator({:defn, fun}, given), do: defn(fun, given, options(:evaluator, %{}))
  def evaluator(_call, _given), do: nil

  @doc "The options of Nx.Defn that choose who runs a whole program."
  def options(:ferrox, run), do: [compiler: Ferrox, math: run.math, fallback: :raise]
  def options(:evaluator, _run), do: [compiler: Nx.Defn.Evaluator]

  # Compiled before it is timed.
  defp defn(fun, given, opts) do
    given = Enum.map(given, &Ferrox.to_nx/1)
    call(Nx.Defn.compile(fun, given, opts), given)
  end

  @doc "The same on Nx.BinaryBackend."
  def binary({:defn, _fun}, _given), do: nil

  def binary(call, given) do
    given = Enum.map(given, &Nx.backend_transfer(Ferrox.to_nx(&1), Nx.BinaryBackend))

    fun =
      case call do
        {:nx, fun} -> call(fun, given)
        {:nx, fun, _} -> call(fun, given)
        call -> direct(Nx, call, given)
      end

    fn -> Nx.with_default_backend(Nx.BinaryBackend, fun) end
  end

  # Captured once, so that a call costs what it costs in a program.
  defp direct(module, {op, more}, given) do
    args = given ++ more
    fun = Function.capture(module, op, length(args))
    call(fun, args)
  end

  defp direct(module, fun, given), do: call(fun, [module | given])

  defp call(fun, [a]), do: fn -> fun.(a) end
  defp call(fun, [a, b]), do: fn -> fun.(a, b) end
  defp call(fun, [a, b, c]), do: fn -> fun.(a, b, c) end
  defp call(fun, args), do: fn -> apply(fun, args) end

  @doc "The results of a call, as a list."
  def results(answer) when is_tuple(answer), do: Tuple.to_list(answer)
  def results(answer), do: List.wrap(answer)
end
