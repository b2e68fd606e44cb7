defmodule Ferrox.Ivy.Casting do
  @moduledoc since: "0.1.0"
  @moduledoc """
  Casts tensors whose data type a function doesn't support.

  Without a casting mode, such a tensor raises an error. A mode substitutes another type, in which
  the function is then computed:

    * `:up` - the next wider supported type of the same group;
    * `:down` - the next narrower supported type of the same group;
    * `:cross` - for integers, the default float if the function supports no integer type; for
      floats, the default integer if it supports no float type; for bools, the default integer.

  The groups are the unsigned integers, the signed integers, the floats in the order bfloat16,
  float16, float32, float64, and the complex types. If several modes are on, cross is tried first,
  then up, then down. If no mode finds a supported type, the function raises the same error as
  without a mode.

  An unsupported type in the option `dtype:` is also substituted, and the result is cast back to the
  given type. Otherwise the result keeps the type in which it was computed, unless the function
  declares `@ret_dtype_target`, see `Ferrox.Ivy.Support`.

      iex> x = Ferrox.tensor([0.5], type: :f16)
      iex> Ferrox.Ivy.Profile.with_backend({:torch, "2.0.1"}, fn ->
      ...>   Ferrox.Ivy.Casting.with_casting(:up, fn -> Ferrox.Ivy.Functions.expm1(x).type end)
      ...> end)
      {:f, 32}

      iex> x = Ferrox.tensor([0.5], type: :f16)
      iex> Ferrox.Ivy.Profile.with_backend({:torch, "2.0.1"}, fn -> Ferrox.Ivy.Functions.expm1(x) end)
      ** (ArgumentError) Ferrox.Ivy.Functions.expm1/1 doesn't support float16 under torch 2.0.1, only int8, int16, int32, int64, uint8, bfloat16, float32, float64, bool; cast it, or let Ferrox.Ivy.Casting.with_casting/2 do so

  The modes are settings of the calling process. The application's configuration has the modes of
  processes without a setting: `config :ferrox, ivy: [casting: [:up]]`.
  """

  alias Ferrox.Ivy.{Default, Dtype, Profile, Scope, Support}
  alias Ferrox.Tensor

  @typedoc "A casting mode."
  @type mode :: :cross | :up | :down

  # The modes in the order in which they are tried.
  @modes [:cross, :up, :down]

  @doc """
  Returns the modes that are on, in the order in which they are tried.

  ## Examples

      iex> Ferrox.Ivy.Casting.modes()
      []
      iex> Ferrox.Ivy.Casting.with_casting([:down, :up], &Ferrox.Ivy.Casting.modes/0)
      [:up, :down]

  """
  @spec modes() :: [mode]
  def modes, do: Scope.get(:casting, [], &modes!/1)

  @doc """
  Runs the function with only the given modes on: one mode, a list, `:all`, or `[]` for none.

  The previous modes are restored at the end, also if the function raises.

  ## Examples

      iex> Ferrox.Ivy.Casting.with_casting(:all, &Ferrox.Ivy.Casting.modes/0)
      [:cross, :up, :down]

      iex> Ferrox.Ivy.Casting.with_casting(:sideways, fn -> :ok end)
      ** (ArgumentError) unknown casting mode :sideways, expected :cross, :up, :down, a list of them, or :all

  """
  @spec with_casting(mode | :all | [mode], fun) :: term
  def with_casting(modes, fun), do: Scope.run(:casting, modes!(modes), fun)

  defp modes!(:all), do: @modes

  defp modes!(modes) do
    modes = List.wrap(modes)

    with [unknown | _] <- modes -- @modes do
      raise ArgumentError,
            "unknown casting mode #{inspect(unknown)}, expected " <>
              "#{Enum.map_join(@modes, ", ", &inspect/1)}, a list of them, or :all"
    end

    Enum.filter(@modes, &(&1 in modes))
  end

  for {name, modes, text} <- [
        {:upcast_data_types, [:up], "upcasting"},
        {:downcast_data_types, [:down], "downcasting"},
        {:crosscast_data_types, [:cross], "crosscasting"},
        {:cast_data_types, @modes, "all three modes"}
      ] do
    @doc """
    Switches #{text} on or off for the calling process, or inside of `with_casting/2` until the end
    of its function.

    ## Examples

        iex> Ferrox.Ivy.Casting.#{name}()
        iex> Ferrox.Ivy.Casting.modes()
        #{inspect(modes)}
        iex> Ferrox.Ivy.Casting.#{name}(false)
        iex> Ferrox.Ivy.Casting.modes()
        []

    """
    @spec unquote(name)(boolean) :: :ok
    def unquote(name)(on \\ true) do
      case on do
        true -> replace_modes(modes() ++ unquote(modes))
        false -> replace_modes(modes() -- unquote(modes))
        other -> raise ArgumentError, "expected true or false, got: #{inspect(other)}"
      end
    end
  end

  defp replace_modes(modes) do
    Scope.pop(:casting)
    Scope.push(:casting, modes!(modes))
  end

  @doc """
  Returns the type that substitutes an unsupported type: nil if no mode finds one, and the type itself
  if it is supported.

  ## Examples

      iex> unsupported = ["float16", "complex64", "complex128"]
      iex> for mode <- [:up, :down, :cross, :all], do: Ferrox.Ivy.Casting.substitute("float16", unsupported, mode)
      [{:f, 32}, {:bf, 16}, nil, {:f, 32}]
      iex> floats = Ferrox.Ivy.all_float_dtypes()
      iex> for mode <- [:up, :down, :cross, :all], do: Ferrox.Ivy.Casting.substitute("float16", floats, mode)
      [nil, nil, {:s, 32}, {:s, 32}]

  """
  @spec substitute(Dtype.name(), [Dtype.name()], mode | :all | [mode]) :: Dtype.t() | nil
  def substitute(type, unsupported, modes) do
    type = Dtype.known!(type)
    unsupported = Enum.map(unsupported, &Dtype.known!/1)

    if type in unsupported,
      do: Enum.find_value(modes!(modes), &find_substitute(&1, type, unsupported)),
      else: type
  end

  defp find_substitute(:cross, type, unsupported) do
    none_supported? = fn class ->
      type in Dtype.all(class) and Profile.valid(Profile.current(), class) -- unsupported == []
    end

    substitute =
      cond do
        type == :bool or none_supported?.(:float) -> Default.default_int_dtype()
        none_supported?.(:int) -> Default.default_float_dtype()
        true -> nil
      end

    if substitute not in unsupported, do: substitute
  end

  defp find_substitute(mode, type, unsupported) do
    group = if mode == :up, do: group(type), else: Enum.reverse(group(type))
    group |> Enum.drop_while(&(&1 != type)) |> Enum.find(&(&1 not in unsupported))
  end

  # The types of the type's group that the backend has, in order of increasing width.
  defp group(:bool), do: []

  defp group({kind, _}) do
    kinds = Enum.find([[:u], [:s], [:bf, :f], [:c]], &(kind in &1))
    types = for {kind, _} = type <- Dtype.all(:numeric), kind in kinds, do: type
    types -- Profile.invalid(Profile.current())
  end

  # Runs a function that declares data types: substitutes the unsupported types of its arguments.
  @doc false
  @spec run({module, atom, arity}, [term], fun) :: term
  def run(function, args, fun) do
    case unsupported(function) do
      [] ->
        fun.(args)

      unsupported ->
        {_version, declared} = Support.declared(function)
        replace = &replace(&1, unsupported, function)
        {args, given} = replace_dtype(args, replace)
        result_type = given || ret_dtype_target(args, declared[:ret_dtype_target])
        result = args |> map_tensors(&replace_type(&1, replace)) |> fun.()
        if result_type, do: map_tensors(result, &Ferrox.as_type(&1, result_type)), else: result
    end
  end

  # The types of the backend that the function doesn't support by its own declaration.
  defp unsupported(function) do
    invalid = Profile.invalid(Profile.current())
    supported = Support.function_supported_dtypes(function, recurse: false)
    supported = if is_map(supported), do: supported.primary, else: supported
    devices = Support.function_supported_devices_and_dtypes(function, recurse: false)
    cpu = Map.get(devices[:primary] || devices, :cpu, supported)
    (Dtype.all() -- Enum.filter(supported, &(&1 in cpu))) -- invalid
  end

  # The type, or its substitute if the function doesn't support it. Any other term stays as it is.
  defp replace(type, unsupported, function) do
    if Dtype.parse(type),
      do:
        substitute(type, unsupported, modes()) || raise_unsupported!(type, unsupported, function),
      else: type
  end

  # Replaces the option dtype: in the last argument. Returns the arguments, and the given type if it
  # was replaced.
  defp replace_dtype(args, replace) do
    with options when options != [] <- List.last(args, []),
         true <- Keyword.keyword?(options),
         given when given != nil <- options[:dtype] do
      given = Dtype.new!(given)
      substitute = replace.(given)
      options = Keyword.put(options, :dtype, substitute)
      {List.replace_at(args, -1, options), if(substitute != given, do: given)}
    else
      _ -> {args, nil}
    end
  end

  # The type that the arguments at the declared positions promote to, or nil.
  defp ret_dtype_target(_args, nil), do: nil

  defp ret_dtype_target(args, positions) do
    types = for at <- positions, %Tensor{type: type} <- [Enum.at(args, at)], do: type
    if types != [], do: Ferrox.Ivy.result_type(types)
  end

  defp replace_type(%Tensor{type: type} = tensor, replace) do
    case replace.(type) do
      ^type -> tensor
      substitute -> Ferrox.as_type(tensor, substitute)
    end
  end

  # Applies the function to the tensors in nested lists and tuples.
  defp map_tensors(%Tensor{} = tensor, fun), do: fun.(tensor)
  defp map_tensors(list, fun) when is_list(list), do: Enum.map(list, &map_tensors(&1, fun))

  defp map_tensors(tuple, fun) when is_tuple(tuple),
    do: tuple |> Tuple.to_list() |> map_tensors(fun) |> List.to_tuple()

  defp map_tensors(other, _fun), do: other

  @spec raise_unsupported!(Dtype.t(), [Dtype.t()], {module, atom, arity}) :: no_return
  defp raise_unsupported!(type, unsupported, {module, name, arity} = function) do
    {version, _declared} = Support.declared(function)
    profile = Profile.current()

    supported =
      case Profile.valid(profile) -- unsupported do
        [] -> "nor any other type"
        types -> "only " <> Enum.map_join(types, ", ", &Dtype.name/1)
      end

    raise ArgumentError,
          "#{inspect(module)}.#{name}/#{arity} doesn't support #{Dtype.name(type)}" <>
            "#{backend_text(version, profile)}, #{supported}; cast it, or let " <>
            "Ferrox.Ivy.Casting.with_casting/2 do so"
  end

  # The part of the error message about the version or the backend.
  defp backend_text(nil, nil), do: ""
  defp backend_text(version, nil), do: " in version #{version}"
  defp backend_text(version, profile), do: " under #{profile.name} #{version || profile.version}"
end
