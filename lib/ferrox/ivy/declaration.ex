defmodule Ferrox.Ivy.Declaration do
  @moduledoc false
  # Checks the declarations of `Ferrox.Ivy.Support` when a function is defined, and converts them to
  # one form.

  alias Ferrox.Ivy.{Dtype, Profile, Version}

  @dtype_attributes [:supported_dtypes, :unsupported_dtypes]
  @device_attributes [:supported_devices, :unsupported_devices]
  @device_and_dtype_attributes [:supported_device_and_dtypes, :unsupported_device_and_dtypes]
  @support_attributes @dtype_attributes ++ @device_attributes ++ @device_and_dtype_attributes

  # The names of classes of types in declarations, with those of `Ferrox.Ivy.Dtype`.
  @dtype_classes [
    {"valid", :all},
    {"numeric", :numeric},
    {"float", :float},
    {"integer", :int},
    {"unsigned", :uint},
    {"complex", :complex}
  ]

  @doc "Returns the attributes that declare supported or unsupported types and devices."
  @spec support_attributes() :: [atom]
  def support_attributes, do: @support_attributes

  @doc "Returns the value of an attribute in the form that `Ferrox.Ivy.Support` stores, or raises."
  @spec check!(atom, term, module) :: term
  def check!(key, value, _module) when key in @support_attributes, do: declaration!(key, value)

  def check!(key, value, module) when key in [:calls, :compositional] do
    functions =
      Enum.map(List.wrap(value), fn
        {name, arity} when is_atom(name) and is_integer(arity) -> {module, name, arity}
        {_, _, _} = function -> function
        function -> reference!(function)
      end)

    if key == :compositional, do: hd(functions), else: functions
  end

  # Whether the kernel exists is not checked here: the native library is asked when the supported
  # types are.
  def check!(:kernel, op, _module) when is_atom(op), do: op

  def check!(:kernel, other, _module) do
    raise ArgumentError, "@kernel is the name of an operation, got: #{inspect(other)}"
  end

  def check!(:ret_dtype_target, positions, _module) do
    positions = List.wrap(positions)

    unless Enum.all?(positions, &(is_integer(&1) and &1 >= 0)) do
      raise ArgumentError,
            "@ret_dtype_target is a list of positions of arguments, got: #{inspect(positions)}"
    end

    positions
  end

  # Returns {:always, list}, {:versions, [{range, list}]}, or {:backends, [{backend, value}]} where
  # each value has one of the first two forms.
  defp declaration!(key, value) when is_map(value) do
    raise ArgumentError,
          "@#{key} is a list of pairs, since the order of the ranges counts, got: #{inspect(value)}"
  end

  defp declaration!(key, value) do
    backends = Profile.backends()

    cond do
      not is_list(value) ->
        raise ArgumentError, "@#{key} is a list, got: #{inspect(value)}"

      value != [] and Enum.all?(value, &match?({range, _} when is_binary(range), &1)) ->
        {:versions,
         for {range, names} <- value do
           Version.parse_range!(range)
           {range, content!(key, names)}
         end}

      value != [] and Enum.all?(value, &match?({name, _} when is_atom(name), &1)) and
          Enum.any?(Keyword.keys(value), &(&1 in backends)) ->
        {:backends,
         for {backend, inner} <- value do
           unless backend in backends do
             raise ArgumentError,
                   "unknown backend #{inspect(backend)} in @#{key}, expected one of " <>
                     Enum.map_join(backends, ", ", &inspect/1)
           end

           {backend, declaration!(key, inner)}
         end}

      true ->
        {:always, content!(key, value)}
    end
  end

  defp content!(key, names) when key in @dtype_attributes,
    do: Enum.map(names!(key, names), &dtype!/1)

  defp content!(key, names) when key in @device_attributes,
    do: Enum.map(names!(key, names), &device!/1)

  # A map from device to types. The types of the device "all" are added to those of each device,
  # whatever the order of the entries.
  defp content!(key, by_device) do
    for {given, names} <- names!(key, by_device),
        types = Enum.map(names!(key, names), &dtype!/1),
        device <- if(given in [:all, "all"], do: Profile.all_devices(), else: [device!(given)]),
        reduce: %{} do
      merged -> Map.update(merged, device, types, &(&1 ++ types))
    end
  end

  defp names!(_key, names) when is_list(names), do: names

  defp names!(key, other),
    do: raise(ArgumentError, "expected a list in @#{key}, got: #{inspect(other)}")

  defp device!(device) do
    unless device in Profile.all_devices() do
      raise ArgumentError,
            "unknown device #{inspect(device)}, expected one of " <>
              Enum.map_join(Profile.all_devices(), ", ", &inspect/1)
    end

    device
  end

  # A type, or {:class, class}.
  defp dtype!(name) do
    case List.keyfind(@dtype_classes, name, 0) do
      {_name, class} ->
        {:class, class}

      nil ->
        Dtype.parse(name) ||
          raise ArgumentError,
                "unknown data type #{inspect(name)}, expected one of " <>
                  Enum.map_join(Dtype.all(), ", ", &Dtype.name/1) <>
                  ", or a class of them: " <> Enum.map_join(@dtype_classes, ", ", &elem(&1, 0))
    end
  end

  @doc "Returns a function as `{module, name, arity}`, given in this form or as a capture."
  @spec reference!(term) :: {module, atom, arity}
  def reference!({module, name, arity} = function)
      when is_atom(module) and is_atom(name) and is_integer(arity),
      do: function

  def reference!(function) when is_function(function) do
    case Function.info(function, :type) do
      {:type, :external} ->
        {:module, module} = Function.info(function, :module)
        {:name, name} = Function.info(function, :name)
        {:arity, arity} = Function.info(function, :arity)
        {module, name, arity}

      {:type, :local} ->
        raise ArgumentError,
              "expected a function of a module, such as &Ferrox.add/2, got: #{inspect(function)}"
    end
  end

  def reference!(other) do
    raise ArgumentError,
          "expected a function such as &Ferrox.add/2, or {module, name, arity}, got: " <>
            inspect(other)
  end
end
