defmodule Ferrox.Ivy.Support do
  @moduledoc """
  Declares which data types and devices a function supports, where the function is defined.

      defmodule MyKernels do
        use Ferrox.Ivy.Support, version: "2.0.1"

        @unsupported_dtypes [{"2.0.1 and below", ["float16", "complex"]}]
        def expm1(x), do: Ferrox.expm1(x)

        @calls [expm1: 1]
        def sinh(x), do: Ferrox.divide(Ferrox.subtract(expm1(x), expm1(Ferrox.negate(x))), 2)
      end

  A function that declares data types checks its tensors when it is called: a tensor of an
  unsupported type raises, or is cast by the modes of `Ferrox.Ivy.Casting`.

  ## Declarations

  Ivy's decorators are module attributes before a definition:

    * `@supported_dtypes` or `@unsupported_dtypes` - the first declares that all other types are
      unsupported, the second that all other types are supported. A function can't have both
    * `@supported_devices` or `@unsupported_devices` - the same for devices
    * `@supported_device_and_dtypes` or `@unsupported_device_and_dtypes` - data types by device:
      `:cpu`, `:gpu`, `:tpu`, or `:all`
    * `@calls` - the functions that the function calls, as `name: arity` in the same module,
      captures such as `&Ferrox.exp/1`, or `{module, name, arity}`
    * `@kernel` - the operation of Ferrox that the function corresponds to. Under the backend
      `:ferrox`, the function supports the types of this operation. Functions of `Ferrox` have this
      declaration implicitly
    * `@compositional` - for a function that is primary only for some arguments: the function that is
      used for the other arguments, as `name: arity`. In Ivy, these are partial mixed functions
    * `@ret_dtype_target` - the positions of the arguments to whose type the result is cast back

  A data type is a name, or one of the classes `"valid"`, `"numeric"`, `"float"`, `"integer"`,
  `"unsigned"` and `"complex"`, which stand for the types of the class that the backend in effect
  has. A declaration is one of

    * a list of types or devices, for all versions;
    * a list of pairs of a version range and such a list, see `Ferrox.Ivy.Version`;
    * a list of pairs of a backend and one of the two forms above, for functions that don't have a
      kernel for each backend. Other backends are not restricted.

  An empty list of supported types or devices stands for all of them, as in Ivy.

  ## Versions

  `use Ferrox.Ivy.Support, version: "2.0.1"` sets the version that is looked up in the ranges. For
  frontends, the option can be the name of a framework, such as `version: :torch`, which stands for
  the version that Ivy assumes for it. Without the option, it is the version of the backend in
  effect.

  ## Several definitions at once

  The macros `with_unsupported_dtypes/2` and so on, named after Ivy's decorators, wrap definitions:

      with_unsupported_dtypes [{"0.4.11 and below", ["complex"]}] do
        def f1(x), do: x
        def f2(x), do: x
      end

  """

  alias Ferrox.Ivy.{Declaration, Dtype, Kernels, Profile, Version}

  @typedoc "A function, as a capture or as `{module, name, arity}`."
  @type function_ref :: fun | {module, atom, arity}

  @dtype_attributes [:supported_dtypes, :unsupported_dtypes]
  @device_attributes [:supported_devices, :unsupported_devices]
  @device_and_dtype_attributes [:supported_device_and_dtypes, :unsupported_device_and_dtypes]
  @support_attributes @dtype_attributes ++ @device_attributes ++ @device_and_dtype_attributes
  @other_attributes [:calls, :kernel, :compositional, :ret_dtype_target]

  # The versions of the frameworks that Ivy's frontends are written for.
  @framework_versions [
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

  ## Declarations

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
    Applies the attribute `@#{attribute}` to every definition in the block.

    A definition in the block that has this attribute itself raises an error. Definitions outside of
    the block are not affected.

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

  # The version of the option `:version` of `use`, or nil without it.
  @doc false
  @spec version!(keyword) :: String.t() | nil
  def version!(opts) do
    case Keyword.pop(opts, :version) do
      {nil, []} ->
        nil

      {version, []} when is_binary(version) ->
        version

      {framework, []} when is_atom(framework) ->
        @framework_versions[framework] ||
          raise ArgumentError,
                "unknown framework #{inspect(framework)}, expected a version or one of " <>
                  Enum.map_join(@framework_versions, ", ", &inspect(elem(&1, 0)))

      {_version, rest} ->
        raise ArgumentError,
              "expected :version alone, a version or a framework's name, got: #{inspect(rest)}"
    end
  end

  # Stores the declarations of a function in the attribute @ivy_functions of its module.
  @doc false
  @spec __on_definition__(Macro.Env.t(), atom, atom, [term], [term], term) :: term
  def __on_definition__(env, kind, name, args, _guards, _body) when kind in [:def, :defp] do
    module = env.module

    own_attributes =
      for key <- @support_attributes ++ @other_attributes,
          value = take_attribute(module, key),
          do: {key, value}

    blocks = Module.get_attribute(module, :ivy_blocks)
    function = {name, length(args)}
    functions = Module.get_attribute(module, :ivy_functions)

    if own_attributes != [] or (blocks != [] and not is_map_key(functions, function)) do
      declared = merge!(own_attributes ++ blocks, module, function)

      declared =
        Map.new(declared, fn {key, value} -> {key, Declaration.check!(key, value, module)} end)

      declared = Map.put(declared, :visibility, kind)
      Module.put_attribute(module, :ivy_functions, Map.put(functions, function, declared))
    end
  end

  def __on_definition__(_env, _kind, _name, _args, _guards, _body), do: :ok

  # The value of an attribute, which is deleted because it applies to the next definition only.
  defp take_attribute(module, key) do
    value = Module.get_attribute(module, key)
    Module.delete_attribute(module, key)
    value
  end

  # Raises if an attribute is declared both for the function and by a block around it.
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
          Enum.any?(
            @dtype_attributes ++ @device_and_dtype_attributes ++ [:kernel],
            &is_map_key(declared, &1)
          ) do
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

  ## Queries

  @doc """
  Returns the data types that a function supports under a backend. The functions that it calls must
  support them too.

  For a function with the attribute `@compositional`, returns a map
  `%{compositional: types, primary: types}`.

  ## Options

    * `:recurse` - false to ignore the functions that it calls
    * `:backend` - the backend, by default the one in effect

  ## Examples

      iex> Ferrox.Ivy.Support.function_supported_dtypes(&Ferrox.bitwise_and/2, backend: :ferrox)
      [{:s, 8}, {:s, 16}, {:s, 32}, {:s, 64}, {:u, 8}, {:u, 16}, {:u, 32}, {:u, 64}, :bool]
      iex> Ferrox.Ivy.Support.function_supported_dtypes(&Ferrox.Ivy.Functions.fmin/2, backend: :tensorflow)
      [{:bf, 16}, {:f, 16}, {:f, 32}, {:f, 64}]

  """
  @spec function_supported_dtypes(function_ref, keyword) :: [Dtype.t()] | map
  def function_supported_dtypes(function, opts \\ []), do: query(function, opts, :dtypes, false)

  @doc """
  Returns the data types that a function doesn't support, including those that the backend doesn't
  have. The options and maps are those of `function_supported_dtypes/2`.

  ## Examples

      iex> Ferrox.Ivy.Support.function_unsupported_dtypes(&Ferrox.Ivy.Functions.floor_divide/2, backend: :numpy)
      [{:bf, 16}, {:c, 64}, {:c, 128}]

  """
  @spec function_unsupported_dtypes(function_ref, keyword) :: [Dtype.t()] | map
  def function_unsupported_dtypes(function, opts \\ []), do: query(function, opts, :dtypes, true)

  @doc """
  Returns the devices that a function supports. The options and maps are those of
  `function_supported_dtypes/2`.

  ## Examples

      iex> Ferrox.Ivy.Support.function_supported_devices(&Ferrox.Ivy.Functions.gcd/2, backend: :torch)
      [:cpu, :gpu]

  """
  @spec function_supported_devices(function_ref, keyword) :: [Profile.device()] | map
  def function_supported_devices(function, opts \\ []), do: query(function, opts, :devices, false)

  @doc """
  Returns the devices that a function doesn't support. The options and maps are those of
  `function_supported_dtypes/2`.

  ## Examples

      iex> Ferrox.Ivy.Support.function_unsupported_devices(&Ferrox.Ivy.Functions.gcd/2, backend: :numpy)
      [:gpu, :tpu]

  """
  @spec function_unsupported_devices(function_ref, keyword) :: [Profile.device()] | map
  def function_unsupported_devices(function, opts \\ []),
    do: query(function, opts, :devices, true)

  @doc """
  Returns the data types that a function supports on each device, as a map. Devices without any
  supported type are left out.

  ## Examples

      iex> types = Ferrox.Ivy.Support.function_supported_devices_and_dtypes(&Ferrox.Ivy.Functions.gcd/2, backend: :paddle)
      iex> {:s, 8} in types.gpu and {:s, 8} not in types.cpu
      true

  """
  @spec function_supported_devices_and_dtypes(function_ref, keyword) :: map
  def function_supported_devices_and_dtypes(function, opts \\ []),
    do: query(function, opts, :both, false)

  @doc """
  Returns the data types that a function doesn't support on each device, as a map.

  ## Examples

      iex> Ferrox.Ivy.Support.function_unsupported_devices_and_dtypes(&Ferrox.Ivy.Functions.abs/1, backend: :torch).cpu
      [{:u, 16}, {:u, 32}, {:u, 64}]

  """
  @spec function_unsupported_devices_and_dtypes(function_ref, keyword) :: map
  def function_unsupported_devices_and_dtypes(function, opts \\ []),
    do: query(function, opts, :both, true)

  # The types or devices that a function supports, or doesn't support if `complement?` is true. Only
  # the supported ones are computed, and the unsupported ones are their complement.
  defp query(function, opts, what, complement?) do
    {recurse, profile} = options!(opts)
    function = Declaration.reference!(function)
    {_version, declared} = declared(function)

    query_recursively = fn function ->
      supported = supported(function, what, profile, recurse)
      if complement?, do: complement(supported, what), else: supported
    end

    case declared[:compositional] do
      nil ->
        query_recursively.(function)

      other ->
        primary = own_support(function, what, profile)
        primary = if complement?, do: complement(primary, what), else: primary
        %{compositional: query_recursively.(other), primary: primary}
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

  defp supported(function, what, profile, false), do: own_support(function, what, profile)

  defp supported(function, what, profile, true) do
    function
    |> reachable([])
    |> Enum.map(&own_support(&1, what, profile))
    |> Enum.reduce(&intersect/2)
  end

  # The function and all functions that it calls, directly or indirectly, each of them once.
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

  # The types or devices that a function supports by its own declaration, without those of the
  # functions that it calls.
  defp own_support(function, :dtypes, profile) do
    valid = Profile.valid(profile)
    {version, declared} = declared(function)

    {supported, unsupported} =
      resolve_pair!(function, declared, version, profile, @dtype_attributes)

    valid
    |> Enum.filter(&(supported in [nil, []] or &1 in expand(supported, profile)))
    |> Enum.reject(&(unsupported != nil and &1 in expand(unsupported, profile)))
    |> Enum.filter(&kernel_supports?(declared[:kernel], &1, profile))
  end

  defp own_support(function, :devices, profile) do
    {version, declared} = declared(function)

    {supported, unsupported} =
      resolve_pair!(function, declared, version, profile, @device_attributes)

    profile
    |> Profile.valid_devices()
    |> Enum.filter(&(supported in [nil, []] or &1 in supported))
    |> Enum.reject(&(unsupported != nil and &1 in unsupported))
  end

  defp own_support(function, :both, profile) do
    {version, declared} = declared(function)

    {supported, unsupported} =
      resolve_pair!(function, declared, version, profile, @device_and_dtype_attributes)

    types = own_support(function, :dtypes, profile)

    for device <- own_support(function, :devices, profile),
        supported in [nil, %{}, []] or is_map_key(supported, device),
        types =
          types
          |> keep_supported(supported, device, profile)
          |> drop_unsupported(unsupported, device, profile),
        types != [],
        into: %{},
        do: {device, types}
  end

  defp keep_supported(types, %{} = supported, device, profile) when is_map_key(supported, device),
    do: Enum.filter(types, &(&1 in expand(supported[device], profile)))

  defp keep_supported(types, _supported, _device, _profile), do: types

  defp drop_unsupported(types, %{} = unsupported, device, profile),
    do: types -- expand(Map.get(unsupported, device, []), profile)

  defp drop_unsupported(types, _unsupported, _device, _profile), do: types

  defp kernel_supports?(nil, _type, _profile), do: true
  defp kernel_supports?(op, type, %Profile{name: :ferrox}), do: Kernels.supports?(op, type)
  defp kernel_supports?(_op, _type, _profile), do: true

  # The declared supported and unsupported types or devices. Raises if both are declared.
  defp resolve_pair!({module, name, arity}, declared, version, profile, [
         supported_key,
         unsupported_key
       ]) do
    supported = resolve(declared[supported_key], version, profile)
    unsupported = resolve(declared[unsupported_key], version, profile)

    if supported != nil and unsupported != nil do
      raise ArgumentError,
            "#{inspect(module)}.#{name}/#{arity} declares both #{supported_key} and #{unsupported_key}; " <>
              "one of them says all"
    end

    {supported, unsupported}
  end

  # The declared types or devices for the version and the backend, nil if there are none.
  defp resolve(nil, _version, _profile), do: nil
  defp resolve({:always, content}, _version, _profile), do: content
  defp resolve({:versions, _ranges}, nil, nil), do: nil

  defp resolve({:versions, ranges}, version, profile),
    do: Version.resolve(ranges, version || profile.version)

  defp resolve({:backends, _backends}, _version, nil), do: nil

  defp resolve({:backends, backends}, _version, profile),
    do: resolve(backends[profile.name], nil, profile)

  # The types, with each class replaced by the types of this class that the backend has.
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

  ## Access to the declarations

  # The version that the module of a function has set, and the declarations of the function.
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
