defmodule Ferrox.Ivy.Casting do
  @moduledoc """
  What becomes of tensors whose data type a function doesn't support.

  Without a mode they raise. The modes put another type in its place, and the
  function is computed in that:

    * `:up` - the next wider supported one of the same group;
    * `:down` - the next narrower one;
    * `:cross` - for integers, where no integer is supported, the default float;
      for floats, where no float is, the default integer; and that for bools too.

  The groups are the unsigned integers, the signed ones, the floats in the order
  bfloat16, float16, float32, float64, and the complex numbers. Where several modes
  are on, cross comes first, then up, then down; where none finds a supported type,
  the function raises as without a mode.

  A type given as `dtype:` is replaced as well, and the result is cast back to it.
  Results of tensors alone stay in the type that they were computed in.

      iex> x = Ferrox.tensor([0.5], type: :f16)
      iex> Ferrox.Ivy.Profile.with_backend({:torch, "2.0.1"}, fn ->
      ...>   Ferrox.Ivy.Casting.with_casting(:up, fn -> Ferrox.Ivy.Functions.expm1(x).type end)
      ...> end)
      {:f, 32}

      iex> x = Ferrox.tensor([0.5], type: :f16)
      iex> Ferrox.Ivy.Profile.with_backend({:torch, "2.0.1"}, fn -> Ferrox.Ivy.Functions.expm1(x) end)
      ** (ArgumentError) Ferrox.Ivy.Functions.expm1/1 doesn't support float16 under torch 2.0.1, only int8, int16, int32, int64, uint8, bfloat16, float32, float64, bool; cast it, or let Ferrox.Ivy.Casting.with_casting/2 do so

  The modes belong to the calling process, over those in the application's
  configuration: `config :ferrox, ivy: [casting: [:up]]`.
  """

  alias Ferrox.Ivy.{Default, Dtype, Profile, Scope, Support}
  alias Ferrox.Tensor

  @type mode :: :cross | :up | :down

  # In the order in which they are tried.
  @modes [:cross, :up, :down]

  @doc """
  The modes that are on, in the order in which they are tried.

  ## Examples

      iex> Ferrox.Ivy.Casting.modes()
      []
      iex> Ferrox.Ivy.Casting.with_casting([:down, :up], &Ferrox.Ivy.Casting.modes/0)
      [:up, :down]

  """
  @spec modes() :: [mode]
  def modes do
    case Scope.fetch(:casting, &modes!/1) do
      {:ok, modes} -> modes
      :error -> []
    end
  end

  @doc """
  Runs the function with these modes and no others: one, a list, `:all`, or `[]`.

  What was on before is restored at the end, and when the function raises.

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
    case List.wrap(modes) -- @modes do
      [] ->
        Enum.filter(@modes, &(&1 in List.wrap(modes)))

      [unknown | _] ->
        raise ArgumentError,
              "unknown casting mode #{inspect(unknown)}, expected " <>
                "#{Enum.map_join(@modes, ", ", &inspect/1)}, a list of them, or :all"
    end
  end

  for {name, modes, text} <- [
        {:upcast_data_types, [:up], "upcasting"},
        {:downcast_data_types, [:down], "downcasting"},
        {:crosscast_data_types, [:cross], "crosscasting"},
        {:cast_data_types, @modes, "all three modes"}
      ] do
    @doc """
    Switches #{text} on or off for the calling process, or until the end of the
    `with_casting/2` around it.

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
        true -> put(modes() ++ unquote(modes))
        false -> put(modes() -- unquote(modes))
        other -> raise ArgumentError, "expected true or false, got: #{inspect(other)}"
      end
    end
  end

  defp put(modes) do
    Scope.pop(:casting)
    Scope.push(:casting, modes!(modes))
  end

  @doc """
  The type that takes the place of an unsupported one; nil where no mode finds any,
  and the type itself where it is supported.

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
      do: Enum.find_value(modes!(modes), &cast(&1, type, unsupported)),
      else: type
  end

  defp cast(:cross, type, unsupported) do
    target =
      cond do
        type == :bool -> Default.default_int_dtype()
        type in Dtype.all(:int) -> none?(:int, unsupported) && Default.default_float_dtype()
        type in Dtype.all(:float) -> none?(:float, unsupported) && Default.default_int_dtype()
        true -> nil
      end

    if target && target not in unsupported, do: target
  end

  defp cast(:up, type, unsupported) do
    group = group(type)
    wider = Enum.drop_while(group, &(&1 != type))
    Enum.find(wider, &(&1 not in unsupported))
  end

  defp cast(:down, type, unsupported) do
    narrower = type |> group() |> Enum.reverse() |> Enum.drop_while(&(&1 != type))
    Enum.find(narrower, &(&1 not in unsupported))
  end

  defp none?(class, unsupported), do: Profile.valid(Profile.current(), class) -- unsupported == []

  # What the backend has of the type's group, narrow ones first.
  defp group(type) do
    Enum.find_value([:uint, :int, :float, :complex], [], fn class ->
      if type in Dtype.all(class), do: Enum.filter(Dtype.all(class), &same_group?(&1, type))
    end) -- Profile.invalid(Profile.current())
  end

  defp same_group?({:u, _}, {kind, _}), do: kind == :u
  defp same_group?(_other, _type), do: true

  # What every function goes through that declares data types.
  @doc false
  @spec run({module, atom, arity}, [term], fun) :: term
  def run({module, _, _} = function, args, fun) do
    case unsupported(function) do
      [] ->
        fun.(args)

      unsupported ->
        {_version, declared} = Support.declared(function)
        replace = &replace(&1, unsupported, function, module)
        {args, given} = replace_dtype(args, replace)
        target = given || target(args, declared[:ret_dtype_target])
        result = args |> map(&cast_tensor(&1, replace)) |> fun.()
        if target, do: map(result, &cast_back(&1, target)), else: result
    end
  end

  # The types that the function itself doesn't support, without those that the
  # backend doesn't have.
  defp unsupported(function) do
    invalid = Profile.invalid(Profile.current())
    own = Support.function_supported_dtypes(function, recurse: false)
    own = if is_map(own), do: own.primary, else: own
    devices = Support.function_supported_devices_and_dtypes(function, recurse: false)
    cpu = Map.get(devices[:primary] || devices, :cpu, own)
    (Dtype.all() -- Enum.filter(own, &(&1 in cpu))) -- invalid
  end

  defp replace(type, unsupported, function, module) do
    cond do
      Dtype.parse(type) == nil -> type
      substitute = substitute(type, unsupported, modes()) -> substitute
      true -> refuse!(type, unsupported, function, module)
    end
  end

  # A dtype: among the options, which stand last.
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

  defp target(_args, nil), do: nil

  defp target(args, positions) do
    types = for at <- positions, %Tensor{type: type} <- [Enum.at(args, at)], do: type
    if types != [], do: Ferrox.Ivy.result_type(types)
  end

  defp cast_tensor(%Tensor{type: type} = tensor, replace) do
    case replace.(type) do
      ^type -> tensor
      substitute -> Ferrox.as_type(tensor, substitute)
    end
  end

  defp cast_tensor(other, _replace), do: other

  defp cast_back(%Tensor{} = tensor, type), do: Ferrox.as_type(tensor, type)
  defp cast_back(other, _type), do: other

  # Tensors may lie in lists and tuples.
  defp map(list, fun) when is_list(list), do: Enum.map(list, &map(&1, fun))

  defp map(tuple, fun) when is_tuple(tuple) and tuple != {},
    do: tuple |> Tuple.to_list() |> map(fun) |> List.to_tuple()

  defp map(leaf, fun), do: fun.(leaf)

  defp refuse!(type, unsupported, {_, name, arity} = function, module) do
    {version, _declared} = Support.declared(function)

    supported =
      (Profile.valid(Profile.current()) -- unsupported)
      |> Enum.map_join(", ", &Dtype.name/1)

    raise ArgumentError,
          "#{inspect(module)}.#{name}/#{arity} doesn't support #{Dtype.name(type)}" <>
            "#{under(version, Profile.current())}, #{if supported == "", do: "nor any other type", else: "only " <> supported}" <>
            "; cast it, or let Ferrox.Ivy.Casting.with_casting/2 do so"
  end

  defp under(nil, nil), do: ""
  defp under(version, nil), do: " in version #{version}"
  defp under(version, profile), do: " under #{profile.name} #{version || profile.version}"
end
