defmodule Ferrox.FFT do
  @moduledoc since: "0.1.0"
  @moduledoc """
  Discrete Fourier transforms of any length, along one axis or two, and the frequencies of what they give.

  The functions have the names and options of Nx's. Transforms are computed in 64 bits and rounded once.
  Results are complex, but for `irfft/2`: c128 where the tensor's float has 64 bits, else c64. Integers
  count as the float that their quotient would be.

  No value is set to zero: `:eps`, below which Nx does this, is zero by default.

      iex> Ferrox.FFT.fft(Ferrox.tensor([1, 1, 0, 0]))
      #Ferrox.Tensor<
        c64[4]
        [2.0+0.0i, 1.0-1.0i, 0.0+0.0i, 1.0+1.0i]
      >

  """

  import Ferrox.Operands, only: [native: 1, options!: 3, promotion!: 2, storage: 1]

  alias Ferrox.{Native, Operands, Promotion, Shape, Tensor, Type}
  alias Ferrox.Ops.{Create, Elementwise}
  alias Ferrox.Ops.Shape, as: Shapes

  options = """

  ## Options

    * `:axis` - the last one by default
    * `:length` - how many elements of the axis are transformed: further ones are left out, missing ones
      are zeros. `:power_of_two` is the next power of two. By default, all there are
    * `:eps` - parts of at most this magnitude become zero; 0.0 by default
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`
  """

  for {name, text, code, result} <- [
        {:fft, "The transform of complex or real numbers.", "Ferrox.tensor([1, 1, 1, 1])",
         [4.0, 0.0, 0.0, 0.0]},
        {:ifft, "The inverse of `fft/2`.", "Ferrox.tensor([4, 0, 0, 0])", [1.0, 1.0, 1.0, 1.0]},
        {:rfft,
         "The first half of the transform of real numbers, of which the second mirrors the first: " <>
           "`div(length, 2) + 1` elements.", "Ferrox.tensor([1, 1, 1, 1])", [4.0, 0.0, 0.0]}
      ] do
    @doc """
    #{text}
    #{options}
    ## Examples

        iex> Ferrox.FFT.#{name}(#{code}) |> Ferrox.real() |> Ferrox.to_list()
        #{inspect(result)}

    """
    @spec unquote(name)(Ferrox.operand(), keyword) :: Tensor.t()
    def unquote(name)(tensor, opts \\ []), do: transform(unquote(name), tensor, opts)
  end

  @doc """
  The inverse of `rfft/2`, real numbers. `:length` is that of the result, by default twice the number of
  elements but the last.
  #{options}
  ## Examples

      iex> Ferrox.tensor([1, 2, 3, 4]) |> Ferrox.FFT.rfft() |> Ferrox.FFT.irfft() |> Ferrox.to_list()
      [1.0, 2.0, 3.0, 4.0]

  """
  @spec irfft(Ferrox.operand(), keyword) :: Tensor.t()
  def irfft(tensor, opts \\ []), do: transform(:irfft, tensor, opts)

  for {name, op, text, code, result} <- [
        {:fft2, :fft, "The transform along two axes.", "Ferrox.tensor([[1, 1], [1, 1]])",
         [[4.0, 0.0], [0.0, 0.0]]},
        {:ifft2, :ifft, "The inverse of `fft2/2`.", "Ferrox.tensor([[4, 0], [0, 0]])",
         [[1.0, 1.0], [1.0, 1.0]]}
      ] do
    @doc """
    #{text}

    ## Options

      * `:axes` - two of them; the last two by default
      * `:lengths` - the `:length` of `fft/2` for each of both
      * `:eps` - parts of at most this magnitude become zero; 0.0 by default
      * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

    ## Examples

        iex> Ferrox.FFT.#{name}(#{code}) |> Ferrox.real() |> Ferrox.to_list()
        #{inspect(result)}

    """
    @spec unquote(name)(Ferrox.operand(), keyword) :: Tensor.t()
    def unquote(name)(tensor, opts \\ []),
      do: transform2(unquote(name), unquote(op), tensor, opts)
  end

  for {name, text, count, example} <- [
        {:fftfreq,
         "The frequencies of the elements that `fft/2` gives for a length: zero, the positive ones, " <>
           "then the negative ones", "`length`", [0.0, 0.25, -0.5, -0.25]},
        {:rfftfreq,
         "The frequencies of the elements that `rfft/2` gives for a length, from zero up",
         "`div(length, 2) + 1`", [0.0, 0.25, 0.5]}
      ] do
    @doc """
    #{text}, in cycles per unit of the distance between samples: #{count} numbers.

    ## Options

      * `:d` - the distance between samples; 1 by default
      * `:type` - the default float of the system by default, f32 under Nx's
      * `:promotion` - the system, see `Ferrox.Promotion`

    ## Examples

        iex> Ferrox.FFT.#{name}(4) |> Ferrox.to_list()
        #{inspect(example)}

    """
    @spec unquote(name)(pos_integer, keyword) :: Tensor.t()
    def unquote(name)(length, opts \\ []) do
      opts = options!(opts, [:d, :type, :promotion], unquote(name))
      frequencies(unquote(name), length, opts)
    end
  end

  for {name, text, code, example} <- [
        {:fftshift, "Moves frequency zero of a transform from the start of axes to their middle",
         "[0, 1, 2, -2, -1]", [-2, -1, 0, 1, 2]},
        {:ifftshift,
         "The inverse of `fftshift/2`: moves frequency zero from the middle to the start",
         "[-2, -1, 0, 1, 2]", [0, 1, 2, -2, -1]}
      ] do
    @doc """
    #{text}. The type stays.

    ## Options

      * `:axes` - all by default

    ## Examples

        iex> Ferrox.FFT.#{name}(Ferrox.tensor(#{code})) |> Ferrox.to_list()
        #{inspect(example)}

    """
    @spec unquote(name)(Ferrox.operand(), keyword) :: Tensor.t()
    def unquote(name)(tensor, opts \\ []), do: shift(unquote(name), tensor, opts)
  end

  defp frequencies(name, length, opts) do
    mode = promotion!(opts, name)
    Operands.positive!(length, "the length", name)
    distance = Keyword.get(opts, :d, 1)

    unless is_number(distance) and distance != 0 do
      raise ArgumentError,
            "#{name}: :d must be a number other than zero, got: #{inspect(distance)}"
    end

    type = Operands.type_option(opts, mode, name) || Promotion.facts(mode).float

    unless type != :bool and Type.float?(type) do
      raise ArgumentError,
            "#{name}: frequencies are floats, got type: #{Promotion.Names.short(type)}"
    end

    places =
      if name == :rfftfreq,
        do: Create.iota({div(length, 2) + 1}, type: {:s, 64}, promotion: :nx),
        else: signed_places(length)

    Elementwise.cast(
      Elementwise.step(:divide, Elementwise.cast(places, {:f, 64}), length * distance),
      type
    )
  end

  # From zero up, and from the middle on negative.
  defp signed_places(length) do
    half = div(length, 2)

    -half
    |> Create.arange(length - half, type: {:s, 64}, promotion: :nx)
    |> then(&shift(:ifftshift, &1, []))
  end

  defp shift(name, tensor, opts) do
    opts = options!(opts, [:axes], name)
    %Tensor{shape: shape} = tensor = Operands.to_tensor(tensor, name)

    for axis <- Shape.axes!(shape, opts[:axes], name), reduce: tensor do
      tensor ->
        half = div(elem(shape, axis), 2)
        Shapes.roll(tensor, if(name == :fftshift, do: half, else: -half), axis: axis)
    end
  end

  defp transform(name, tensor, opts) do
    opts = options!(opts, [:axis, :length, :eps, :promotion], name)
    {%Tensor{shape: shape} = tensor, type} = operand!(name, tensor, opts)
    axis = Shape.axis!(shape, Keyword.get(opts, :axis, -1), name)
    size = elem(shape, axis)
    length = length!(opts[:length], if(name == :irfft, do: 2 * (size - 1), else: size), name)

    if length < 1 do
      raise ArgumentError,
            "irfft: one element along axis #{axis} of shape #{inspect(shape)} gives 2 * (1 - 1) = 0 " <>
              "elements: pass a :length"
    end

    results = if name == :rfft, do: div(length, 2) + 1, else: length
    run(name, tensor, type, [{axis, length}], put_elem(shape, axis, results), opts, name)
  end

  defp transform2(name, op, tensor, opts) do
    opts = options!(opts, [:axes, :lengths, :eps, :promotion], name)
    {%Tensor{shape: shape} = tensor, type} = operand!(name, tensor, opts)
    axes = Shape.axes!(shape, Keyword.get(opts, :axes, [-2, -1]), name)

    unless length(axes) == 2 do
      raise ArgumentError, "#{name}: :axes must be two axes, got: #{inspect(axes)}"
    end

    lengths =
      case Keyword.get(opts, :lengths, [nil, nil]) do
        [_, _] = lengths ->
          lengths

        other ->
          raise ArgumentError, "#{name}: :lengths must be a list of two, got: #{inspect(other)}"
      end

    lengths =
      for {axis, given} <- Enum.zip(axes, lengths), do: length!(given, elem(shape, axis), name)

    [{first, n}, {second, m}] = pairs = Enum.zip(axes, lengths)
    to = shape |> put_elem(first, n) |> put_elem(second, m)
    run(op, tensor, type, pairs, to, opts, name)
  end

  # The tensor, and the complex type of its transform.
  defp operand!(name, tensor, opts) do
    mode = promotion!(opts, name)
    tensor = Operands.tensor!(tensor, mode, name)
    float = Promotion.type_as(mode, :divide, name, [tensor, tensor])

    if name == :rfft and Type.complex?(float) do
      raise ArgumentError,
            "rfft expects a tensor of real numbers, got: #{Type.to_string(float)}; use fft/2"
    end

    one = Elementwise.cast(%Tensor{data: <<0>>, type: {:u, 8}, shape: {}}, float)
    type = Promotion.type_as(mode, :conjugate, name, [one])
    {tensor, if(name == :irfft, do: {:f, div(elem(type, 1), 2)}, else: type)}
  end

  defp run(op, tensor, type, axes, shape, opts, name) do
    Shape.validate!(shape, name)
    input = native(%{tensor | type: storage(tensor.type)})
    data = Native.fourier(op, type, shape, axes, eps!(opts, name), input)
    %Tensor{data: data, type: type, shape: shape}
  end

  defp eps!(opts, name),
    do: opts |> Keyword.get(:eps, 0.0) |> Operands.not_negative!(":eps", name)

  defp length!(nil, default, _name), do: default
  defp length!(length, _default, _name) when is_integer(length) and length > 0, do: length
  defp length!(:power_of_two, size, name) when name != :irfft, do: power_of_two(1, size)

  defp length!(other, _default, name) do
    expected = if name == :irfft, do: "", else: " or :power_of_two"

    raise ArgumentError,
          "#{name}: a length must be a positive integer#{expected}, got: #{inspect(other)}"
  end

  defp power_of_two(power, size) when power >= size, do: power
  defp power_of_two(power, size), do: power_of_two(2 * power, size)
end
