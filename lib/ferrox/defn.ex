defmodule Ferrox.Defn do
  @moduledoc since: "0.1.0"
  @moduledoc """
  The compiler of `Nx.Defn` functions: a function becomes one program of the native library, which one
  call runs.

      Nx.Defn.jit(&MyModule.function/1, compiler: Ferrox)
      Nx.Defn.global_default_options(compiler: Ferrox)

  Results are tensors of `Ferrox.Backend`, and the same ones, to the last bit but for those of a NaN, that
  Nx's evaluator gives on `Ferrox.Backend`.

      iex> mean_square = Nx.Defn.jit(fn x -> Nx.mean(Nx.multiply(x, x)) end, compiler: Ferrox)
      iex> Nx.to_number(mean_square.(Nx.tensor([1.0, 2.0, 4.0])))
      7.0

  ## Options

    * `:math` - `:exact` (the default) evaluates functions of f32 in f64 and rounds once, as the backend
      does. `:fast` evaluates `exp`, `log`, `tanh`, `sigmoid`, `erf` and `rsqrt` of f32 in f32, which
      takes less time, with errors of at most two units in the last place.
    * `:hooks` - a map from the names of hooks to the functions that are called in place of those given
      in the code.
    * `:max_concurrency` - the number of partitions of a `Nx.Serving`, 1 by default.
    * `:fallback` - `:evaluator` (the default) passes functions that have no native form to Nx's
      evaluator, `:raise` raises an `ArgumentError` that says why.

  Other options are those of other compilers, and ignored.

  ## Cache

  Compiled functions are kept for the function, the types, shapes, names and vectorized axes of its
  arguments, the names of its hooks, and `:math`. At most 1,000 are kept, and of those that contain large
  tensors as many as have 1 GiB of them; `config :ferrox, :compiler_cache_size` and
  `:compiler_cache_bytes` change that. A function is compiled again after its own module was, but not
  after another module was whose functions it calls: `clear_cache/0` forgets all. Functions capture values when they are made: a
  function that captures another number is another function, and is compiled again. The eighth time it
  logs a warning, which names the function and the value; pass such values as arguments.

  Native programs are kept too, as many, by their operations and the bytes of their literals. So a
  function that is made anew, but has the same operations, is only traced.

  ## Telemetry

  The compilation of a function is a span of `:telemetry.span/3`, which functions that are in the cache
  don't have:

    * `[:ferrox, :compile, :start]` - it begins. Measurements: `:monotonic_time` and `:system_time`, in
      native time units. Metadata: `:function`, and `:telemetry_span_context`, which the events of a span
      share.
    * `[:ferrox, :compile, :stop]` - it is done. Measurements: `:duration` and `:monotonic_time`. Metadata
      as before, and `:result`, which is `:program`, or `:fallback` if the function has no native form.
    * `[:ferrox, :compile, :exception]` - the function, or its compilation, has raised, thrown or exited.
      Measurements as with `:stop`. Metadata as with `:start`, and `:kind`, `:reason` and `:stacktrace`.

  Single events:

    * `[:ferrox, :compiler, :compile]` - a function has become a program. Measurements: `:duration`.
      Metadata: `:function`.
    * `[:ferrox, :compiler, :build]` - a native program has been built, as no function before had the
      same. Measurements: `:duration`. Metadata: `:function`.
    * `[:ferrox, :compiler, :fallback]` - a function has been passed to Nx's evaluator. Measurements:
      `:count`, which is 1. Metadata: `:function` and `:reason`, a text.

  Where the application `:telemetry` isn't loaded, there are none.
  """

  alias Ferrox.Backend
  alias Ferrox.Backend.Default
  alias Ferrox.Defn.{Cache, Expression, Lower, Program, Recompilation}
  alias Ferrox.Native

  @compile {:no_warn_undefined, [Nx, Nx.Defn, Nx.Defn.Composite, Nx.Defn.Evaluator, :telemetry]}

  @doc """
  Prints the program that a function becomes for some arguments, or templates of them, and returns
  `:ok`.

  Values are `%0`, `%1` and so on, the arguments first. Operations that are computed together, a block
  of rows at a time, are listed under one line; their intermediate values stay in the cache of a core.
  The last line of a region has the bytes that its instructions read and write, of all branches.

      iex> row_sums = fn x -> Nx.sum(Nx.exp(x), axes: [1]) end
      iex> Ferrox.Defn.explain(row_sums, [Nx.template({100, 200}, :f32)])
      :ok

  This prints

      regions: 1; literals: 0, 0 bytes

      program(%0):
           0  %2 f32[100] = together(%0 f32[100][200]), 100 rows, 40 at a time:
                buffer 0 = f32 exp(%0)
                %2 = f32 sum(buffer 0)
           1  free %0
              return %2
              # reads 80 KB, writes 400 bytes

  ## Options

    * `:math` - that of the compiler.
    * `:time` - if `true`, runs the program for a fifth of a second, at least twice, and prints before
      each instruction how long it takes in a run in microseconds, its part of the whole in percent,
      and how often it runs, if not once. The arguments are tensors then. Measuring adds some tens of
      nanoseconds to each instruction.

  Raises an `ArgumentError` if the function has no native form, or is to be measured with templates.
  """
  @spec explain(fun, [term], keyword) :: :ok
  def explain(fun, args, opts \\ []) do
    vars = for arg <- args, do: Nx.Defn.Composite.traverse(arg, &Nx.to_tensor/1)
    container = apply(Nx.Defn.debug_expr(fun), vars)
    program = Program.compile(vars, container, :all, math(opts))

    text =
      if opts[:time],
        do: Program.measure(program, Enum.map(measured(vars), &fn -> &1 end)),
        else: Native.explain(program.native)

    IO.puts(text)
  rescue
    exception in Lower.Unsupported ->
      raise ArgumentError, "#{inspect(fun)} has no native form: #{exception.message}"
  end

  # The tensors that a program is run with.
  defp measured(vars) do
    for tensor <- Nx.Defn.Composite.flatten_list(vars) do
      if match?(%{data: %{__struct__: Nx.TemplateBackend}}, tensor) do
        raise ArgumentError,
              "expected tensors to run the program with, got a template: #{inspect(tensor)}"
      end

      tensor
    end
  end

  @doc """
  Forgets all compiled functions.

  A compiled function contains the functions of other modules that it called when it was compiled. Call
  this after such a module was compiled again while the VM runs, as in IEx or Livebook.

      iex> Nx.Defn.jit_apply(&Nx.sin/1, [0.0], compiler: Ferrox)
      Nx.tensor(0.0)
      iex> Ferrox.Defn.clear_cache()
      :ok
  """
  @doc since: "0.1.0"
  @spec clear_cache() :: :ok
  defdelegate clear_cache, to: Cache, as: :clear

  @doc false
  @spec __partitions_options__(keyword) :: [keyword]
  def __partitions_options__(opts), do: List.duplicate(opts, opts[:max_concurrency] || 1)

  @doc false
  @spec __to_backend__(keyword) :: {module, keyword}
  def __to_backend__(_opts), do: {Backend, []}

  @doc false
  @spec __jit__(term, [term], fun, [[fun]], keyword) :: [term]
  def __jit__(key, vars, fun, args_list, opts) do
    run = __compile__(key, vars, fun, opts)
    Enum.flat_map(args_list, &run.([&1]))
  end

  @doc false
  @spec __compile__(term, [term], fun, keyword) :: ([[fun]] -> [term])
  def __compile__(key, vars, fun, opts) do
    hooks = opts |> Keyword.get(:hooks, %{}) |> Map.new()
    math = math(opts)
    fallback = fallback(opts)
    rest = {templates(vars), hooks |> Map.keys() |> Enum.sort(), math, version(key)}

    compiled =
      if Expression.key?(key) do
        Cache.fetch(:functions, {key, rest}, fn ->
          compiled = compile(key, vars, fun, hooks, math)
          {_, stack} = :erlang.process_info(self(), :current_stacktrace)
          Recompilation.note(key, rest, stack)
          {compiled, bytes(compiled)}
        end)
      else
        compile(key, vars, fun, hooks, math)
      end

    case compiled do
      %Program{} = program -> fn [params] -> [Program.run(program, params, hooks)] end
      {:fallback, reason} -> fall_back(fallback, reason, key, vars, fun, opts)
    end
  end

  defp bytes(%Program{bytes: bytes}), do: bytes
  defp bytes({:fallback, _reason}), do: 0

  # The version of the code of a function that is given by its name, which stays equal when its module is
  # compiled again. Other functions belong to one version.
  defp version(fun) do
    with {:type, :external} <- :erlang.fun_info(fun, :type),
         {:module, module} <- :erlang.fun_info(fun, :module),
         true <- :erlang.module_loaded(module) do
      module.module_info(:md5)
    else
      _ -> nil
    end
  end

  # Streams (up to Nx 0.9) are run by the evaluator.
  @doc false
  @spec __stream__(term, term, term, [term], fun, [[fun]], keyword) :: [term]
  def __stream__(key, input, acc, vars, fun, args_list, opts),
    do: Nx.Defn.Evaluator.__stream__(key, input, acc, vars, fun, args_list, opts)

  @doc false
  @spec __shard_jit__(term, term, [term], fun, [[fun]], keyword) :: no_return
  def __shard_jit__(_key, _mesh, _vars, _fun, _args_list, _opts),
    do: raise("sharding is not supported by Ferrox")

  # What a compiled function depends on: what it is told about its arguments, besides what it is. The
  # functions of hooks are looked up at each call.
  defp templates(vars),
    do: Enum.map(vars, &Nx.Defn.Composite.traverse(&1, fn var -> template(var) end))

  defp template(%{type: type, shape: shape, names: names, vectorized_axes: axes} = var),
    do: {type, shape, names, axes, Map.get(var, :donatable?, false)}

  defp math(opts), do: option(opts, :math, [:exact, :fast])
  defp fallback(opts), do: option(opts, :fallback, [:evaluator, :raise])

  # One of two values, the first by default.
  defp option(opts, name, [default, other] = values) do
    value = Keyword.get(opts, name, default)

    if value not in values do
      raise ArgumentError,
            "expected the option #{inspect(name)} to be #{inspect(default)} or " <>
              "#{inspect(other)}, got: #{inspect(value)}"
    end

    value
  end

  defp compile(key, vars, fun, hooks, math) do
    span(key, fn ->
      start = System.monotonic_time()
      container = fun.(vars)
      program = Program.compile(vars, container, hooks, math, &native(&1, key))
      emit(:compile, %{duration: System.monotonic_time() - start}, %{function: key})
      %{program | function: key}
    end)
  end

  # Functions of the same operations and literals share a native program.
  defp native(program, key) do
    Cache.fetch(:programs, program, fn ->
      start = System.monotonic_time()
      native = Native.compile(program)
      emit(:build, %{duration: System.monotonic_time() - start}, %{function: key})
      {native, Program.literal_bytes(program)}
    end)
  end

  defp fall_back(:raise, reason, key, _vars, _fun, _opts),
    do: raise(ArgumentError, "#{inspect(key)} has no native form: #{reason}")

  defp fall_back(:evaluator, reason, key, vars, fun, opts) do
    emit(:fallback, %{count: 1}, %{function: key, reason: reason})
    run = Nx.Defn.Evaluator.__compile__(key, vars, fun, opts)

    fn [params] ->
      params = for param <- params, do: fn -> on_ferrox(param.()) end
      Default.run(run, [[params]])
    end
  end

  # Compiles with the events of a span. What has no native form is no exception there.
  defp span(key, compile) do
    compile = fn ->
      try do
        {compile.(), :program}
      rescue
        exception in Lower.Unsupported -> {{:fallback, exception.message}, :fallback}
      end
    end

    if telemetry?() do
      metadata = %{function: key}

      :telemetry.span([:ferrox, :compile], metadata, fn ->
        {compiled, result} = compile.()
        {compiled, Map.put(metadata, :result, result)}
      end)
    else
      {compiled, _result} = compile.()
      compiled
    end
  end

  defp emit(name, measurements, metadata) do
    if telemetry?(),
      do: :telemetry.execute([:ferrox, :compiler, name], measurements, metadata)
  end

  defp telemetry?, do: Code.ensure_loaded?(:telemetry)

  defp on_ferrox(tensor), do: %{tensor | data: %Backend{state: Expression.data(tensor)}}
end
