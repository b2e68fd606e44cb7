defmodule Ferrox.Ivy.Support do
  @moduledoc """
  Which data types and devices a function supports, said where it is defined.

      defmodule MyKernels do
        use Ferrox.Ivy.Support, version: "2.0.1"

        @unsupported_dtypes [{"2.0.1 and below", ["float16", "complex"]}]
        def expm1(x), do: Ferrox.expm1(x)

        @calls [expm1: 1]
        def sinh(x), do: Ferrox.divide(Ferrox.subtract(expm1(x), expm1(Ferrox.negate(x))), 2)
      end

  A function that declares data types checks its tensors when it is called: one of
  an unsupported type raises, or is cast as `Ferrox.Ivy.Casting` says.

  ## What can be declared

  Ivy's decorators are attributes before a definition:

    * `@supported_dtypes`, `@unsupported_dtypes` - one of them: what the first
      doesn't mention is unsupported, what the second doesn't mention is supported
    * `@supported_devices`, `@unsupported_devices` - likewise
    * `@supported_device_and_dtypes`, `@unsupported_device_and_dtypes` - data types
      by device, `:cpu`, `:gpu`, `:tpu`, or `:all`
    * `@calls` - the functions that it is composed of, as `name: arity` of the same
      module, captures such as `&Ferrox.exp/1`, or `{module, name, arity}`
    * `@kernel` - the operation of Ferrox that it stands for: under the backend
      `:ferrox` it supports what that kernel does. Functions of `Ferrox` have theirs
    * `@compositional` - for a function that is primary for some arguments only, as
      `name: arity`, what it is otherwise: Ivy's partial mixed functions
    * `@ret_dtype_target` - the positions of the arguments whose type the result is
      cast back to

  Data types are names, or one of the classes `"valid"`, `"numeric"`, `"float"`,
  `"integer"`, `"unsigned"` and `"complex"`, which stand for what the backend in
  effect has of them. Each declaration is one of

    * a list of them, for all versions;
    * a list of pairs of a range of versions and such a list, see
      `Ferrox.Ivy.Version`;
    * a list of pairs of a backend and one of the two above, for functions without a
      kernel for each backend. A backend that isn't there is not restricted.

  An empty list of what is supported stands for everything, as it does in Ivy.

  ## Which version

  `use Ferrox.Ivy.Support, version: "2.0.1"` says it, and so does the name of a
  framework, for frontends, `version: :torch`, in the version that Ivy takes it to
  have. Without the option it is that of the backend in effect.

  ## Several definitions at once

  The macros named after Ivy's decorators, `with_unsupported_dtypes/2` and so on,
  wrap definitions:

      with_unsupported_dtypes [{"0.4.11 and below", ["complex"]}] do
        def f1(x), do: x
        def f2(x), do: x
      end

  """

  alias Ferrox.Ivy.{Declaration, Dtype, Kernels, Profile, Version}

  @typedoc "A function that is asked about."
  @type function_ref :: fun | {module, atom, arity}

  @dtypes [:supported_dtypes, :unsupported_dtypes]
  @devices [:supported_devices, :unsupported_devices]
  @both [:supported_device_and_dtypes, :unsupported_device_and_dtypes]
  @attributes @dtypes ++ @devices ++ @both
  @others [:calls, :kernel, :compositional, :ret_dtype_target]

  # The versions that Ivy's frontends are written for.
  @frontends [
    torch: "2.2",
    tensorflow: "2.15.0",
    numpy: "1.25.2",
    jax: "0.4.24",
    scipy: "1.10.1",
    paddle: "2.6.0",
    sklearn: "1.3.0",
    xgboost: "1.7.6",
    torchvision: "0.15.2",
    mindspore: "2.0.0"
  ]

  ## Declaring

  @doc false
  defmacro __using__(opts) do
    quote do
      import Ferrox.Ivy.Support,
        only: [
          with_supported_dtypes: 2,
          with_unsupported_dtypes: 2,
          with_supported_devices: 2,
          with_unsupported_devices: 2,
          with_supported_device_and_dtypes: 2,
          with_unsupported_device_and_dtypes: 2
        ]

      @on_definition Ferrox.Ivy.Support
      @before_compile Ferrox.Ivy.Support
      @ivy_version Ferrox.Ivy.Support.version!(unquote(opts))
      @ivy_blocks []
      @ivy_functions %{}
    end
  end

  for {attribute, declaration, ask, answer} <- [
        {:supported_dtypes, ~s(["float64"]), "dtypes", "[{:f, 64}]"},
        {:unsupported_dtypes, ~s(["numeric"]), "dtypes", "[:bool]"},
        {:supported_devices, "[:gpu]", "devices", "[:gpu]"},
        {:unsupported_devices, "[:gpu]", "devices", "[:cpu]"},
        {:supported_device_and_dtypes, ~s([cpu: ["bool"]]), "devices_and_dtypes",
         "%{cpu: [:bool]}"},
        {:unsupported_device_and_dtypes, ~s([cpu: ["numeric"], gpu: ["valid"]]),
         "devices_and_dtypes", "%{cpu: [:bool]}"}
      ] do
    name = "Block" <> Macro.camelize("#{attribute}")

    @doc """
    Gives every definition in the block the attribute `@#{attribute}`.

    Those before the block stay as they are. A definition that declares the same by
    itself is refused.

    ## Examples

        iex> defmodule #{name} do
        ...>   use Ferrox.Ivy.Support
        ...>   with_#{attribute} #{declaration} do
        ...>     def f(x), do: x
        ...>   end
        ...> end
        iex> Ferrox.Ivy.Support.function_supported_#{ask}(&#{name}.f/1)
        #{answer}

    """
    defmacro unquote(:"with_#{attribute}")(declaration, block)

    defmacro unquote(:"with_#{attribute}")(declaration, do: block) do
      attribute = unquote(attribute)

      quote do
        @ivy_blocks [{unquote(attribute), unquote(declaration)} | @ivy_blocks]
        unquote(block)
        @ivy_blocks tl(@ivy_blocks)
      end
    end
  end

  @doc false
  def version!(opts) do
    case Keyword.pop(opts, :version) do
      {nil, []} ->
        nil

      {version, []} when is_binary(version) ->
        version

      {framework, []} when is_atom(framework) ->
        @frontends[framework] ||
          raise ArgumentError,
                "unknown framework #{inspect(framework)}, expected a version or one of " <>
                  Enum.map_join(@frontends, ", ", &inspect(elem(&1, 0)))

      {_version, rest} ->
        raise ArgumentError,
              "expected :version alone, a version or a framework's name, got: #{inspect(rest)}"
    end
  end

  @doc false
  def __on_definition__(env, kind, name, args, _guards, _body) when kind in [:def, :defp] do
    module = env.module
    own = for key <- @attributes ++ @others, value = take(module, key), do: {key, value}
    blocks = Module.get_attribute(module, :ivy_blocks)
    function = {name, length(args)}
    functions = Module.get_attribute(module, :ivy_functions)

    if own != [] or (blocks != [] and not is_map_key(functions, function)) do
      declared = merge!(own ++ blocks, module, function)

      declared =
        Map.new(declared, fn {key, value} -> {key, Declaration.check!(key, value, module)} end)

      declared = Map.put(declared, :visibility, kind)
      Module.put_attribute(module, :ivy_functions, Map.put(functions, function, declared))
    end
  end

  def __on_definition__(_env, _kind, _name, _args, _guards, _body), do: :ok

  # An attribute is for the next definition only.
  defp take(module, key) do
    value = Module.get_attribute(module, key)
    Module.delete_attribute(module, key)
    value
  end

  defp merge!(pairs, module, {name, arity}) do
    case pairs |> Keyword.keys() |> Enum.frequencies() |> Enum.find(fn {_, n} -> n > 1 end) do
      nil ->
        pairs

      {key, _} ->
        raise ArgumentError,
              "#{inspect(module)}.#{name}/#{arity} declares #{key} twice, once in a block around it"
    end
  end

  @doc false
  defmacro __before_compile__(env) do
    functions = Module.get_attribute(env.module, :ivy_functions)

    checked =
      for {{name, arity}, declared} <- functions,
          Enum.any?(@dtypes ++ @both ++ [:kernel], &is_map_key(declared, &1)) do
        args = Macro.generate_arguments(arity, env.module)

        quote do
          defoverridable [{unquote(name), unquote(arity)}]

          unquote(declared.visibility)(unquote(name)(unquote_splicing(args))) do
            Ferrox.Ivy.Casting.run(
              {__MODULE__, unquote(name), unquote(arity)},
              unquote(args),
              fn unquote(args) -> super(unquote_splicing(args)) end
            )
          end
        end
      end

    quote do
      unquote_splicing(checked)

      @doc false
      def __ivy__, do: {@ivy_version, unquote(Macro.escape(functions))}
    end
  end

  ## Asking

  @doc """
  The data types that a function supports under a backend, those of what it is
  composed of among the rest.

  A function that is primary for some arguments only gives a map of both,
  `%{compositional: types, primary: types}`.

  ## Options

    * `:recurse` - false leaves out what it calls
    * `:backend` - instead of the one in effect

  ## Examples

      iex> Ferrox.Ivy.Support.function_supported_dtypes(&Ferrox.bitwise_and/2, backend: :ferrox)
      [{:s, 8}, {:s, 16}, {:s, 32}, {:s, 64}, {:u, 8}, {:u, 16}, {:u, 32}, {:u, 64}, :bool]
      iex> Ferrox.Ivy.Support.function_supported_dtypes(&Ferrox.Ivy.Functions.fmin/2, backend: :tensorflow)
      [{:bf, 16}, {:f, 16}, {:f, 32}, {:f, 64}]

  """
  @spec function_supported_dtypes(function_ref, keyword) :: [Dtype.t()] | map
  def function_supported_dtypes(function, opts \\ []), do: ask(function, opts, :dtypes, false)

  @doc """
  The data types that a function doesn't support, those that the backend doesn't
  have among them. The options and maps are those of `function_supported_dtypes/2`.

  ## Examples

      iex> Ferrox.Ivy.Support.function_unsupported_dtypes(&Ferrox.Ivy.Functions.floor_divide/2, backend: :numpy)
      [{:bf, 16}, {:c, 64}, {:c, 128}]

  """
  @spec function_unsupported_dtypes(function_ref, keyword) :: [Dtype.t()] | map
  def function_unsupported_dtypes(function, opts \\ []), do: ask(function, opts, :dtypes, true)

  @doc """
  The devices that a function supports. The options and maps are those of
  `function_supported_dtypes/2`.

  ## Examples

      iex> Ferrox.Ivy.Support.function_supported_devices(&Ferrox.Ivy.Functions.gcd/2, backend: :torch)
      [:cpu, :gpu]

  """
  @spec function_supported_devices(function_ref, keyword) :: [Profile.device()] | map
  def function_supported_devices(function, opts \\ []), do: ask(function, opts, :devices, false)

  @doc """
  The devices that a function doesn't support.

  ## Examples

      iex> Ferrox.Ivy.Support.function_unsupported_devices(&Ferrox.Ivy.Functions.gcd/2, backend: :numpy)
      [:gpu, :tpu]

  """
  @spec function_unsupported_devices(function_ref, keyword) :: [Profile.device()] | map
  def function_unsupported_devices(function, opts \\ []), do: ask(function, opts, :devices, true)

  @doc """
  The data types that a function supports on each device; devices without any are
  left out.

  ## Examples

      iex> types = Ferrox.Ivy.Support.function_supported_devices_and_dtypes(&Ferrox.Ivy.Functions.gcd/2, backend: :paddle)
      iex> {:s, 8} in types.gpu and {:s, 8} not in types.cpu
      true

  """
  @spec function_supported_devices_and_dtypes(function_ref, keyword) :: map
  def function_supported_devices_and_dtypes(function, opts \\ []),
    do: ask(function, opts, :both, false)

  @doc """
  The data types that a function doesn't support, by device.

  ## Examples

      iex> Ferrox.Ivy.Support.function_unsupported_devices_and_dtypes(&Ferrox.Ivy.Functions.abs/1, backend: :torch).cpu
      [{:u, 16}, {:u, 32}, {:u, 64}]

  """
  @spec function_unsupported_devices_and_dtypes(function_ref, keyword) :: map
  def function_unsupported_devices_and_dtypes(function, opts \\ []),
    do: ask(function, opts, :both, true)

  # Everything is worked out as what is supported; the rest is its complement.
  defp ask(function, opts, what, complement?) do
    {recurse, profile} = options!(opts)
    function = Declaration.reference!(function)
    {_version, declared} = declared(function)

    answer = fn function ->
      supported = supported(function, what, profile, recurse)
      if complement?, do: complement(supported, what), else: supported
    end

    case declared[:compositional] do
      nil ->
        answer.(function)

      other ->
        primary = own(function, what, profile)
        primary = if complement?, do: complement(primary, what), else: primary
        %{compositional: answer.(other), primary: primary}
    end
  end

  defp options!(opts) do
    case is_list(opts) && Keyword.keyword?(opts) && Keyword.keys(opts) -- [:recurse, :backend] do
      [] ->
        recurse = Keyword.get(opts, :recurse, true)

        unless is_boolean(recurse) do
          raise ArgumentError, ":recurse is true or false, got: #{inspect(recurse)}"
        end

        backend = if opts[:backend], do: Profile.fetch!(opts[:backend]), else: Profile.current()
        {recurse, backend}

      [unknown | _] ->
        raise ArgumentError, "unknown option #{inspect(unknown)}, expected :recurse or :backend"

      false ->
        raise ArgumentError, "expected a keyword list of options, got: #{inspect(opts)}"
    end
  end

  defp complement(supported, :dtypes), do: Dtype.all() -- supported
  defp complement(supported, :devices), do: Profile.all_devices() -- supported

  defp complement(supported, :both) do
    for device <- Profile.all_devices(),
        types = Dtype.all() -- Map.get(supported, device, []),
        types != [],
        into: %{},
        do: {device, types}
  end

  defp supported(function, what, profile, false), do: own(function, what, profile)

  defp supported(function, what, profile, true) do
    function
    |> reachable([])
    |> Enum.map(&own(&1, what, profile))
    |> Enum.reduce(&intersect/2)
  end

  # Each function once, whatever calls what.
  defp reachable(function, seen) do
    if function in seen do
      seen
    else
      {_version, declared} = declared(function)
      next = Map.get(declared, :calls, []) ++ List.wrap(declared[:compositional])
      Enum.reduce(next, [function | seen], &reachable/2)
    end
  end

  defp intersect(left, right) when is_list(left), do: Enum.filter(right, &(&1 in left))

  defp intersect(left, right) do
    for {device, types} <- right,
        common = intersect(Map.get(left, device, []), types),
        common != [],
        into: %{},
        do: {device, common}
  end

  # What the function says itself.
  defp own(function, :dtypes, profile) do
    valid = Profile.valid(profile)
    {version, declared} = declared(function)
    {supported, unsupported} = resolved!(function, declared, version, profile, @dtypes)

    valid
    |> Enum.filter(&(supported in [nil, []] or &1 in expand(supported, profile)))
    |> Enum.reject(&(unsupported != nil and &1 in expand(unsupported, profile)))
    |> Enum.filter(&kernel?(declared[:kernel], &1, profile))
  end

  defp own(function, :devices, profile) do
    {version, declared} = declared(function)
    {supported, unsupported} = resolved!(function, declared, version, profile, @devices)

    profile
    |> Profile.valid_devices()
    |> Enum.filter(&(supported in [nil, []] or &1 in supported))
    |> Enum.reject(&(unsupported != nil and &1 in unsupported))
  end

  defp own(function, :both, profile) do
    {version, declared} = declared(function)
    {supported, unsupported} = resolved!(function, declared, version, profile, @both)
    types = own(function, :dtypes, profile)

    for device <- own(function, :devices, profile),
        supported in [nil, %{}, []] or is_map_key(supported, device),
        types =
          types |> only(supported, device, profile) |> without(unsupported, device, profile),
        types != [],
        into: %{},
        do: {device, types}
  end

  defp only(types, %{} = supported, device, profile) when is_map_key(supported, device),
    do: Enum.filter(types, &(&1 in expand(supported[device], profile)))

  defp only(types, _supported, _device, _profile), do: types

  defp without(types, %{} = unsupported, device, profile),
    do: types -- expand(Map.get(unsupported, device, []), profile)

  defp without(types, _unsupported, _device, _profile), do: types

  defp kernel?(nil, _type, _profile), do: true
  defp kernel?(op, type, %Profile{name: :ferrox}), do: Kernels.supports?(op, type)
  defp kernel?(_op, _type, _profile), do: true

  defp resolved!({module, name, arity}, declared, version, profile, [yes, no]) do
    supported = resolve(declared[yes], version, profile)
    unsupported = resolve(declared[no], version, profile)

    if supported != nil and unsupported != nil do
      raise ArgumentError,
            "#{inspect(module)}.#{name}/#{arity} declares both #{yes} and #{no}; " <>
              "one of them says all"
    end

    {supported, unsupported}
  end

  # What is declared for the version and the backend, nil if nothing is.
  defp resolve(nil, _version, _profile), do: nil
  defp resolve({:always, content}, _version, _profile), do: content
  defp resolve({:versions, _ranges}, nil, nil), do: nil

  defp resolve({:versions, ranges}, version, profile),
    do: Version.resolve(ranges, version || profile.version)

  defp resolve({:backends, _backends}, _version, nil), do: nil

  defp resolve({:backends, backends}, _version, profile),
    do: resolve(backends[profile.name], nil, profile)

  # The classes, as the backend has them.
  defp expand(types, profile) do
    Enum.flat_map(types, fn
      "valid" -> Profile.valid(profile, :all)
      "numeric" -> Profile.valid(profile, :numeric)
      "integer" -> Profile.valid(profile, :int)
      "unsigned" -> Profile.valid(profile, :uint)
      "float" -> Profile.valid(profile, :float)
      "complex" -> Profile.valid(profile, :complex)
      type -> [type]
    end)
  end

  ## Finding what is declared

  # The version that the module says, and what is declared of the function.
  @doc false
  @spec declared({module, atom, arity}) :: {String.t() | nil, map}
  def declared({Ferrox, name, _arity}) do
    {nil, if(kernel_of_ferrox?(name), do: %{kernel: name}, else: %{})}
  end

  def declared({module, name, arity}) do
    if Code.ensure_loaded?(module) and function_exported?(module, :__ivy__, 0) do
      {version, functions} = module.__ivy__()
      {version, Map.get(functions, {name, arity}, %{})}
    else
      {nil, %{}}
    end
  end

  defp kernel_of_ferrox?(name) do
    Kernels.supports?(name, {:s, 32})
    true
  rescue
    ArgumentError -> false
  end
end
