defmodule Ferrox.Ops.Window do
  @moduledoc false
  # What slides over a tensor: windows, and the kernels of convolutions.

  import Ferrox.Operands, only: [native: 1, options!: 3, promotion!: 2, storage: 1]

  alias Ferrox.{Native, Numbers, Operands, Promotion, Shape, Tensor, Type}
  alias Ferrox.Ops.Elementwise
  alias Ferrox.Ops.Shape, as: Shapes
  alias Ferrox.Promotion.Results

  # No axis is longer.
  @most 0x7FFF_FFFF_FFFF_FFFF

  ## Windows

  @doc "A fold of the elements of each window: `:window_sum` or another operation of the native library."
  @spec fold(atom, term, term, keyword) :: Tensor.t()
  def fold(op, tensor, window, opts) do
    {tensor, mode, over, shape} = windows!(op, tensor, window, opts)
    type = Results.cumulative(mode, op, tensor)
    %{tensor | data: folded(op, tensor, type, over, shape), type: type, shape: shape, weak: false}
  end

  defp folded(op, tensor, type, over, shape),
    do:
      Native.window(op, storage(type), shape, over, tensor |> Elementwise.cast(type) |> native())

  @doc "See `Ferrox.window_mean/3`."
  @spec mean(term, term, keyword) :: Tensor.t()
  def mean(tensor, window, opts) do
    {tensor, mode, over, shape} = windows!(:window_mean, tensor, window, opts)
    type = Promotion.type_as(mode, :mean, :window_mean, [tensor])
    # Sums of integers neither wrap around nor are they rounded twice.
    wide = if Type.float?(storage(tensor.type)), do: type, else: Numbers.wide(type)
    sum = %Tensor{data: folded(:window_sum, tensor, wide, over, shape), type: wide, shape: shape}
    :divide |> Elementwise.step(sum, Native.size(window)) |> Elementwise.cast(type)
  end

  @doc "See `Ferrox.sliding_window_view/3`."
  @spec elements(term, term, keyword) :: Tensor.t()
  def elements(tensor, window, opts) do
    name = :sliding_window_view
    opts = options!(opts, [:strides, :window_dilations], name)
    {tensor, _mode, over, shape} = windows!(name, tensor, window, opts)
    {window, padding, strides, dilations} = over
    shape = List.to_tuple(Tuple.to_list(shape) ++ Tuple.to_list(window))
    windows = {Tuple.to_list(window), strides, dilations, padding}
    zero = {storage(tensor.type), {}, Numbers.encode([0], tensor.type, name)}
    data = Native.window_elements(Shape.validate!(shape, name), windows, native(tensor), zero)
    %{tensor | data: data, shape: shape}
  end

  # The tensor, the promotion, the windows as the library takes them, and the shape of their places.
  defp windows!(name, tensor, window, opts) do
    opts = options!(opts, [:padding, :strides, :window_dilations, :promotion], name)
    mode = promotion!(opts, name)
    %Tensor{shape: shape} = tensor = Operands.tensor!(tensor, mode, name)
    rank = tuple_size(shape)

    unless tuple_size(Shape.validate!(window, name)) == rank do
      raise ArgumentError,
            "#{name}: a window has a size for each axis of shape #{inspect(shape)}, got: #{inspect(window)}"
    end

    strides = distances!(opts, :strides, rank, name)
    dilations = distances!(opts, :window_dilations, rank, name)
    sizes = Tuple.to_list(shape)
    extents = Enum.zip_with(Tuple.to_list(window), dilations, &((&1 - 1) * &2 + 1))
    padding = padding!(opts, extents, name)

    places =
      places!(sizes, extents, padding, strides, name, "a window of shape #{inspect(window)}")

    places = places |> List.to_tuple() |> Shape.validate!(name)
    {tensor, mode, {window, padding, strides, dilations}, places}
  end

  # A positive integer for each axis, or one for all.
  defp distances!(opts, key, rank, name) do
    given = Keyword.get(opts, key) || 1
    distances = if is_list(given), do: given, else: List.duplicate(given, rank)

    unless length(distances) == rank and Enum.all?(distances, &(&1 in 1..@most)) do
      raise ArgumentError,
            "#{name}: #{inspect(key)} must be a positive integer or a list of #{rank}, one for each " <>
              "axis, got: #{inspect(given)}"
    end

    distances
  end

  # Elements before and after those of each axis.
  defp padding!(opts, extents, name) do
    case Keyword.get(opts, :padding, :valid) do
      :valid ->
        for _ <- extents, do: {0, 0}

      :same ->
        for extent <- extents, do: {div(extent - 1, 2), div(extent, 2)}

      padding ->
        unless is_list(padding) and length(padding) == length(extents) and
                 Enum.all?(
                   padding,
                   &match?({a, b} when a in -@most..@most and b in -@most..@most, &1)
                 ) do
          raise ArgumentError,
                "#{name}: :padding must be :valid, :same or a list of {low, high}, integers, for each of " <>
                  "#{length(extents)} axes, got: #{inspect(padding)}"
        end

        padding
    end
  end

  # How many places there are along each axis.
  defp places!(sizes, extents, padding, strides, name, what) do
    for {{size, extent}, {{low, high}, stride}} <-
          Enum.zip(Enum.zip(sizes, extents), Enum.zip(padding, strides)) do
      room = size + low + high

      if extent > room do
        raise ArgumentError,
              "#{name}: #{what}, which is #{extent} long along an axis with its dilation, does not fit " <>
                "into #{Kernel.max(room, 0)} elements, padding included"
      end

      div(room - extent, stride) + 1
    end
  end

  ## Convolutions

  @permutations [:input_permutation, :kernel_permutation, :output_permutation]
  @conv_options [:padding, :strides, :input_dilation, :kernel_dilation] ++
                  [:feature_group_size, :batch_group_size, :promotion] ++ @permutations

  @doc "See `Ferrox.conv/3`."
  @spec conv(term, term, keyword) :: Tensor.t()
  def conv(tensor, kernel, opts) do
    opts = options!(opts, @conv_options, :conv)
    mode = promotion!(opts, :conv)
    operands = for t <- [tensor, kernel], do: Operands.tensor!(t, mode, :conv)
    [%Tensor{shape: shape}, %Tensor{shape: kernel_shape}] = operands
    rank = tuple_size(shape)

    unless rank > 2 and tuple_size(kernel_shape) == rank do
      raise ArgumentError,
            "conv expects {batch, channels, ...} and a kernel {filters, channels, ...} with as many axes, " <>
              "at least three, got shapes #{inspect(shape)} and #{inspect(kernel_shape)}"
    end

    type = Promotion.type_as(mode, :divide, :conv, operands)
    permutations = for key <- @permutations, do: permutation!(opts, key, shape)
    [input_order, kernel_order, output_order] = permutations
    [batch, _channels | sizes] = for axis <- input_order, do: elem(shape, axis)
    [filters, _channels | taps] = for axis <- kernel_order, do: elem(kernel_shape, axis)

    [strides, input_dilation, kernel_dilation] =
      for key <- [:strides, :input_dilation, :kernel_dilation],
          do: distances!(opts, key, rank - 2, :conv)

    spread = fn sizes, dilations -> Enum.zip_with(sizes, dilations, &((&1 - 1) * &2 + 1)) end
    extents = spread.(taps, kernel_dilation)
    padding = padding!(opts, extents, :conv)
    what = "a kernel of shape #{inspect(kernel_shape)}"
    sizes = spread.(sizes, input_dilation)
    places = places!(sizes, extents, padding, strides, :conv, what)

    groups = {group_size!(opts, :feature_group_size), group_size!(opts, :batch_group_size)}
    # Where the groups don't divide the batch, the library refuses them.
    result = [Kernel.max(div(batch, elem(groups, 1)), 1), filters | places]
    shape = for {_axis, size} <- output_order |> Enum.zip(result) |> Enum.sort(), do: size
    shape = shape |> List.to_tuple() |> Shape.validate!(:conv)

    options =
      {strides, padding, input_dilation, kernel_dilation, groups, List.to_tuple(permutations)}

    [input, kernel] = Enum.map(operands, &native/1)
    %Tensor{data: Native.conv(type, shape, input, kernel, options), type: type, shape: shape}
  end

  defp permutation!(opts, key, shape) do
    given = Keyword.get(opts, key) || Shape.all_axes(shape)
    axes = Shape.axes!(shape, given, :conv)

    unless length(axes) == tuple_size(shape) do
      raise ArgumentError,
            "conv: #{inspect(key)} must name each of #{tuple_size(shape)} axes once, got: #{inspect(given)}"
    end

    axes
  end

  defp group_size!(opts, key),
    do: opts |> Keyword.get(key, 1) |> Operands.positive!(inspect(key), :conv)

  @doc "See `Ferrox.convolve/3`."
  @spec convolve(term, term, keyword) :: Tensor.t()
  def convolve(left, right, opts) do
    {left, right, overlap, type} = vectors!(:convolve, left, right, opts, :full)
    [short, long] = Enum.sort_by([left, right], &Native.size(&1.shape))
    slide(long, Shapes.reverse(short, []), overlap, type)
  end

  @doc "See `Ferrox.correlate/3`."
  @spec correlate(term, term, keyword) :: Tensor.t()
  def correlate(left, right, opts) do
    {left, right, overlap, type} = vectors!(:correlate, left, right, opts, :valid)
    right = if match?({:c, _}, type), do: Elementwise.step(:conjugate, right), else: right

    if left.shape >= right.shape,
      do: slide(left, right, overlap, type),
      else: right |> slide(left, overlap, type) |> Shapes.reverse([])
  end

  # The vectors in the type that they are multiplied in, how far they overlap, and the type of the result.
  defp vectors!(name, left, right, opts, default) do
    opts = options!(opts, [:mode, :promotion], name)
    mode = promotion!(opts, name)
    operands = for t <- [left, right], do: Operands.tensor!(t, mode, name)
    type = Promotion.type_as(mode, :dot, name, operands)

    for %Tensor{shape: shape} <- operands, tuple_size(shape) != 1 do
      raise ArgumentError, "#{name} expects two vectors, got a tensor of shape #{inspect(shape)}"
    end

    overlap =
      case Keyword.get(opts, :mode, default) do
        overlap when overlap in [:full, :same, :valid] ->
          overlap

        other ->
          raise ArgumentError,
                "#{name}: :mode must be :full, :same or :valid, got: #{inspect(other)}"
      end

    # The number of true products must not wrap around to zero.
    wide = if type == :bool, do: {:u, 64}, else: type
    [left, right] = for t <- operands, do: Elementwise.cast(t, wide)
    {left, right, overlap, type}
  end

  # The sums of the products of the elements of the longer vector and those of the shorter one beside them.
  defp slide(%Tensor{type: wide, shape: {n}} = long, %Tensor{shape: {m}} = short, overlap, type) do
    {low, high} =
      padding =
      case overlap do
        :full -> {m - 1, m - 1}
        :same -> {div(m, 2), m - 1 - div(m, 2)}
        :valid -> {0, 0}
      end

    size = n + low + high - m + 1
    axes = [0, 1, 2]
    options = {[1], [padding], [1], [1], {1, 1}, {axes, axes, axes}}

    [input, kernel] =
      for t <- [long, short], do: native(%{t | shape: {1, 1, Native.size(t.shape)}})

    data = Native.conv(wide, {1, 1, size}, input, kernel, options)
    Elementwise.cast(%Tensor{data: data, type: wide, shape: {size}}, type)
  end
end
