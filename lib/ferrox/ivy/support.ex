defmodule Ferrox.Ivy.Support do
  @moduledoc since: "0.1.0"
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

  @support_attributes Declaration.support_attributes()
  @attributes @support_attributes ++ [:calls, :kernel, :compositional, :ret_dtype_target]

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
        only: unquote(for key <- @support_attributes, do: {:"with_#{key}", 2})

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

    # Attributes apply to the next definition only, so they are deleted.
    own_attributes =
      for key <- @attributes, value = Module.delete_attribute(module, key), do: {key, value}

    blocks = Module.get_attribute(module, :ivy_blocks)
    function = {name, length(args)}
    functions = Module.get_attribute(module, :ivy_functions)

    if own_attributes != [] or (blocks != [] and not is_map_key(functions, function)) do
      keys = Keyword.keys(own_attributes ++ blocks)

      with [key | _] <- keys -- Enum.uniq(keys) do
        raise ArgumentError,
              "#{inspect(module)}.#{name}/#{length(args)} declares #{key} twice, once in a block " <>
                "around it"
      end

      declared =
        for {key, value} <- own_attributes ++ blocks,
            into: %{visibility: kind},
            do: {key, Declaration.check!(key, value, module)}

      Module.put_attribute(module, :ivy_functions, Map.put(functions, function, declared))
    end
  end

  def __on_definition__(_env, _kind, _name, _args, _guards, _body), do: :ok

  @doc false
  defmacro __before_compile__(env) do
    functions = Module.get_attribute(env.module, :ivy_functions)
    restricting = [:kernel | @support_attributes] -- [:supported_devices, :unsupported_devices]

    checked =
      for {{name, arity}, declared} <- functions,
          Enum.any?(restricting, &is_map_key(declared, &1)) do
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

  for {query, what, complement?, text, example, answer} <- [
        {:unsupported_dtypes, :dtypes, true,
         "data types that a function doesn't support, including those that the backend doesn't have",
         "floor_divide/2, backend: :numpy)", "[{:bf, 16}, {:c, 64}, {:c, 128}]"},
        {:supported_devices, :devices, false, "devices that a function supports",
         "gcd/2, backend: :torch)", "[:cpu, :gpu]"},
        {:unsupported_devices, :devices, true, "devices that a function doesn't support",
         "gcd/2, backend: :numpy)", "[:gpu, :tpu]"},
        {:supported_devices_and_dtypes, :device_and_dtypes, false,
         "data types that a function supports on each device, as a map without the devices that " <>
           "have none", "gcd/2, backend: :paddle).cpu -- [s: 32, s: 64]",
         "[{:bf, 16}, {:f, 16}, {:f, 32}, {:f, 64}, {:c, 64}, {:c, 128}, :bool]"},
        {:unsupported_devices_and_dtypes, :device_and_dtypes, true,
         "data types that a function doesn't support on each device, as a map",
         "abs/1, backend: :torch).cpu", "[{:u, 16}, {:u, 32}, {:u, 64}]"}
      ] do
    @doc """
    Returns the #{text}.

    The options, and the map for a function with `@compositional`, are those of
    `function_supported_dtypes/2`.

    ## Examples

        iex> Ferrox.Ivy.Support.function_#{query}(&Ferrox.Ivy.Functions.#{example}
        #{answer}

    """
    @spec unquote(:"function_#{query}")(function_ref, keyword) ::
            [Dtype.t()] | [Profile.device()] | map
    def unquote(:"function_#{query}")(function, opts \\ []),
      do: query(function, opts, unquote(what), unquote(complement?))
  end

  # The types or devices that a function supports, or doesn't support if `complement?` is true. Only
  # the supported ones are computed, and the unsupported ones are their complement.
  defp query(function, opts, what, complement?) do
    {recurse, profile} = options!(opts)
    function = Declaration.reference!(function)

    answer = fn function, recurse ->
      supported = supported(function, what, profile, recurse)
      if complement?, do: complement(supported, what), else: supported
    end

    case declared(function) do
      {_version, %{compositional: other}} ->
        %{compositional: answer.(other, recurse), primary: answer.(function, false)}

      _ ->
        answer.(function, recurse)
    end
  end

  defp options!(opts) do
    unless Keyword.keyword?(opts) do
      raise ArgumentError, "expected a keyword list of options, got: #{inspect(opts)}"
    end

    with [unknown | _] <- Keyword.keys(opts) -- [:recurse, :backend] do
      raise ArgumentError, "unknown option #{inspect(unknown)}, expected :recurse or :backend"
    end

    recurse = Keyword.get(opts, :recurse, true)

    unless is_boolean(recurse) do
      raise ArgumentError, ":recurse is true or false, got: #{inspect(recurse)}"
    end

    {recurse, Profile.fetch!(opts[:backend] || Profile.current())}
  end

  defp complement(supported, :dtypes), do: Dtype.all() -- supported
  defp complement(supported, :devices), do: Profile.all_devices() -- supported

  defp complement(supported, :device_and_dtypes) do
    for device <- Profile.all_devices(),
        types = Dtype.all() -- Map.get(supported, device, []),
        types != [],
        into: %{},
        do: {device, types}
  end

  defp supported(function, what, profile, recurse) do
    functions = if recurse, do: reachable(function, []), else: [function]
    functions |> Enum.map(&own_support(&1, what, profile)) |> Enum.reduce(&intersect/2)
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
    valid = restrict(Profile.valid(profile), function, :dtypes, profile)

    case {declared(function), profile} do
      {{_version, %{kernel: op}}, %Profile{name: :ferrox}} ->
        Enum.filter(valid, &Kernels.supports?(op, &1))

      _ ->
        valid
    end
  end

  defp own_support(function, :devices, profile),
    do: profile |> Profile.valid_devices() |> restrict(function, :devices, profile)

  defp own_support(function, :device_and_dtypes, profile) do
    {supported, unsupported} = resolve_pair!(function, :device_and_dtypes, profile)
    types = own_support(function, :dtypes, profile)

    for device <- own_support(function, :devices, profile),
        on_device = if(supported in [nil, %{}], do: types, else: Map.get(supported, device, [])),
        types = Enum.filter(types, &(&1 in expand(on_device, profile))),
        types = types -- expand(Map.get(unsupported || %{}, device, []), profile),
        types != [],
        into: %{},
        do: {device, types}
  end

  # The types or devices without those that the function doesn't support by its declaration.
  defp restrict(all, function, what, profile) do
    {supported, unsupported} = resolve_pair!(function, what, profile)
    supported = if supported in [nil, []], do: all, else: expand(supported, profile)
    Enum.filter(all, &(&1 in supported)) -- expand(unsupported || [], profile)
  end

  # The declared supported and unsupported types or devices. Raises if both are declared.
  defp resolve_pair!({module, name, arity} = function, what, profile) do
    {version, declared} = declared(function)
    supported = resolve(declared[:"supported_#{what}"], version, profile)
    unsupported = resolve(declared[:"unsupported_#{what}"], version, profile)

    if supported != nil and unsupported != nil do
      raise ArgumentError,
            "#{inspect(module)}.#{name}/#{arity} declares both supported_#{what} and " <>
              "unsupported_#{what}; one of them says all"
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
      {:class, class} -> Profile.valid(profile, class)
      type_or_device -> [type_or_device]
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

  # Kernels.supports?/2 raises for a function that Ferrox doesn't have; the type doesn't matter.
  defp kernel_of_ferrox?(name) do
    Kernels.supports?(name, {:s, 32})
    true
  rescue
    ArgumentError -> false
  end
end
