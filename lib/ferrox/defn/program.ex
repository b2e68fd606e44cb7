defmodule Ferrox.Defn.Program do
  @moduledoc false
  # A compiled function: a program of the native library, the templates of what it gives, and the
  # functions that it calls.

  alias Ferrox.{Backend, Native, Observer}
  alias Ferrox.Defn.{Expression, Lower}

  @compile {:no_warn_undefined, [Nx, Nx.Defn.Composite]}

  @enforce_keys [:native, :parameters, :used, :output, :callbacks, :bytes]
  defstruct [:native, :parameters, :used, :output, :callbacks, :bytes, :function]

  @type t :: %__MODULE__{
          native: reference,
          parameters: [{{atom, pos_integer}, tuple}],
          used: [boolean],
          output: term,
          callbacks: tuple,
          bytes: non_neg_integer,
          function: term
        }

  @doc """
  Compiles what a function gives for arguments of the types and shapes of `vars`. `build` gives the
  native program of what `Ferrox.Native.compile/1` takes.

  `hooks` and `math` are those of `Ferrox.Defn.Lower.program/4`.
  """
  @spec compile([term], term, map | :all, :exact | :fast, ({[tuple], [binary]} -> reference)) :: t
  def compile(vars, container, hooks, math, build \\ &Native.compile/1) do
    parameters =
      for var <- Nx.Defn.Composite.flatten_list(vars), do: {var.type, Expression.shape(var)}

    %{program: program, callbacks: callbacks, used: used} =
      Lower.program(container, parameters, hooks, math)

    %__MODULE__{
      native: build.(program),
      parameters: parameters,
      used: used,
      output: Nx.Defn.Composite.traverse(container, &Nx.to_template/1),
      callbacks: List.to_tuple(callbacks),
      bytes: literal_bytes(program)
    }
  end

  @doc """
  The number of bytes of the literals of what `Ferrox.Native.compile/1` takes, which the native program
  keeps.
  """
  @spec literal_bytes({[tuple], [binary]}) :: non_neg_integer
  def literal_bytes({_regions, literals}), do: literals |> Enum.map(&byte_size/1) |> Enum.sum()

  @doc """
  Runs a compiled function. The arguments are functions that give tensors, `hooks` the functions by
  the names of hooks.
  """
  @spec run(t, [fun], map) :: term
  def run(%__MODULE__{native: native}, _params, _hooks) when node(native) != node() do
    raise ArgumentError,
          "this function has been compiled on the node #{node(native)}, and its program is only " <>
            "there; compile it on #{node()}"
  end

  def run(%__MODULE__{native: native} = program, params, hooks) do
    arguments = params |> data(program.used) |> List.to_tuple()
    observed = observed(program, fn -> Native.run(native, arguments) end)
    finish(observed, program, arguments, hooks)
  end

  defp observed(%__MODULE__{function: function, parameters: parameters}, run) do
    case :persistent_term.get(Observer, :off) do
      :off -> run.()
      mode -> Observer.program(mode, function, parameters, run)
    end
  end

  # The time for which runs are measured, in microseconds, and the maximum number of runs.
  @measured_time 200_000
  @max_measured_runs 1_000

  @doc """
  The program as text, with the times that its instructions take, after a run that isn't measured.
  """
  @spec measure(t, [fun]) :: String.t()
  def measure(%__MODULE__{native: native} = program, params) do
    arguments = params |> data(program.used) |> List.to_tuple()
    {time, _results} = :timer.tc(fn -> run(program, params, %{}) end)
    runs = div(@measured_time, max(time, 1)) |> max(1) |> min(@max_measured_runs)
    native |> Native.measure(arguments, runs) |> finish(program, arguments, %{})
  end

  # The data of the arguments. Those that are not used are not asked for.
  defp data([param | params], [true | used]),
    do: [Native.whole_bytes(Expression.data(param.())) | data(params, used)]

  defp data([_param | params], [false | used]), do: [<<>> | data(params, used)]
  defp data([], []), do: []

  defp finish([_ | _] = results, program, _arguments, _hooks), do: fill(program.output, results)
  defp finish([], program, _arguments, _hooks), do: program.output
  defp finish({:measured, text, _results}, _program, _arguments, _hooks), do: text

  defp finish({:call, run, number, values}, program, arguments, hooks) do
    answers = call(elem(program.callbacks, number), values, hooks)
    native = program.native
    observed = observed(program, fn -> Native.resume(native, run, arguments, answers) end)
    finish(observed, program, arguments, hooks)
  end

  defp call({:io, spec, container}, values, hooks) do
    fun =
      case spec do
        {:fn, fun} -> fun
        {:named, name, callback} -> hooks[name] || callback
      end

    if fun, do: fun.(fill(container, values))
    []
  end

  defp call({:runtime, fun, container, template, opts}, values, _hooks) do
    result = apply(fun, [fill(container, values) | opts])

    if not Nx.compatible?(template, result) do
      raise "expected the runtime_call function to match the given output template"
    end

    for tensor <- Nx.Defn.Composite.flatten_list([result]),
        do: Native.whole_bytes(Expression.data(tensor))
  end

  # The container, with these data in its tensors. While Nx traces a function, a tensor can only become
  # part of it on Nx.BinaryBackend.
  defp fill(%{__struct__: Nx.Tensor} = tensor, [data]), do: put(tensor, data)

  defp fill(container, data) do
    {filled, []} =
      Nx.Defn.Composite.traverse(container, data, fn tensor, [data | rest] ->
        {put(tensor, data), rest}
      end)

    filled
  end

  defp put(%{type: type} = tensor, data) do
    data = %Backend{state: Native.result(data, type, Expression.shape(tensor))}

    data =
      if Process.get(Nx.Defn.Compiler), do: %{data | __struct__: Nx.BinaryBackend}, else: data

    %{tensor | data: data}
  end
end
