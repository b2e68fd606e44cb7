defmodule Ferrox.Ivy.Functions do
  @moduledoc since: "0.1.0"
  @moduledoc """
  Functions of Ivy that have their own rules for data types, on Ferrox's tensors.

  Operands are promoted by Ivy's rules, and `Ferrox.Ivy.Default` finds the default of `dtype:`. The
  functions declare with `Ferrox.Ivy.Support` which types a backend doesn't support: under the backend
  `:torch`, for example, they accept and refuse the same types as Ivy's functions with torch, although
  Ferrox always computes the result. `Ferrox.Ivy.Casting` can cast a refused type.

      iex> x = Ferrox.tensor([1, 2], type: :s32)
      iex> Ferrox.Ivy.Functions.add(x, Ferrox.tensor([0.5, 1.5])).type
      {:f, 64}
      iex> Ferrox.Ivy.Functions.cos(x).type
      {:f, 32}

  """

  import Kernel, except: [abs: 1]

  use Ferrox.Ivy.Support

  alias Ferrox.Ivy
  alias Ferrox.Ivy.{Default, Dtype}
  alias Ferrox.{Promotion, Tensor}

  ## Creation

  for {name, number} <- [zeros: 0, ones: 1] do
    @doc """
    Returns a tensor of #{name}, of the type `dtype:` or the global default.

    ## Examples

        iex> Ferrox.Ivy.Functions.#{name}({2}).type
        {:f, 32}
        iex> Ferrox.Ivy.Functions.#{name}({2}, dtype: "int8")
        #Ferrox.Tensor<
          s8[2]
          [#{number}, #{number}]
        >

    """
    @spec unquote(name)(tuple, keyword) :: Tensor.t()
    def unquote(name)(shape, opts \\ []),
      do: filled(unquote(number), shape, Default.infer_dtype([shape], opts))
  end

  @doc """
  Returns a tensor filled with one number, of the type `dtype:` or the default type of the number.

  ## Examples

      iex> for number <- [1, 1.0, 2 ** 40], do: Ferrox.Ivy.Functions.full({2}, number).type
      [{:s, 32}, {:f, 32}, {:s, 64}]

  """
  @spec full(tuple, Ivy.input(), keyword) :: Tensor.t()
  def full(shape, number, opts \\ []),
    do: filled(number, shape, Default.default_dtype(dtype: opts[:dtype], item: number))

  @doc """
  Returns the numbers from `start` up to and not including `stop`, with the distance `step`.

  ## Examples

      iex> Ferrox.Ivy.Functions.arange(0, 3).type
      {:s, 32}
      iex> Ferrox.Ivy.Functions.arange(0, 1, 0.25) |> Ferrox.to_list()
      [0.0, 0.25, 0.5, 0.75]

      iex> Ferrox.Ivy.Functions.arange(3, 0)
      ** (ArgumentError) arange from 3 to 0 by 1 has no elements

  """
  @spec arange(number, number, number, keyword) :: Tensor.t()
  def arange(start, stop, step \\ 1, opts \\ [])

  def arange(start, stop, step, opts)
      when is_number(start) and is_number(stop) and is_number(step) do
    count = if step == 0, do: 0, else: ceil((stop - start) / step)

    if count < 1 do
      raise ArgumentError, "arange from #{start} to #{stop} by #{step} has no elements"
    end

    type = Default.default_dtype(dtype: opts[:dtype], item: [start, stop, step])
    Ivy.number(for(i <- 0..(count - 1), do: start + i * step), type)
  end

  def arange(start, stop, step, _opts) do
    raise ArgumentError,
          "arange expects numbers, got: #{inspect(start)}, #{inspect(stop)} and #{inspect(step)}"
  end

  defp filled(number, shape, type), do: number |> Ivy.number(type) |> Ferrox.broadcast(shape)

  ## Elementwise

  @doc """
  Returns the absolute values. Unsigned integers are returned unchanged, because some backends have
  no kernel for them.

  ## Examples

      iex> Ferrox.Ivy.Functions.abs(Ferrox.tensor([-1, 2])) |> Ferrox.to_list()
      [1, 2]

  """
  @spec abs(Tensor.t()) :: Tensor.t()
  @kernel :abs
  def abs(%Tensor{type: {:u, _}} = x), do: x
  def abs(x), do: with_ivy_promotion(fn -> Ferrox.abs(x) end)

  @doc """
  Returns the sums of the elements of two operands.

  ## Examples

      iex> Ferrox.Ivy.Functions.add(Ferrox.tensor([1], type: :s8), 1).type
      {:s, 8}

  """
  @spec add(Ivy.input(), Ivy.input()) :: Tensor.t()
  @kernel :add
  def add(x1, x2), do: binary(x1, x2, &Ferrox.add/2)

  @doc """
  Returns the bitwise and of two operands.

  ## Examples

      iex> Ferrox.Ivy.Functions.bitwise_and(Ferrox.tensor([6]), 3) |> Ferrox.to_list()
      [2]

      iex> Ferrox.Ivy.Profile.with_backend(:jax, fn ->
      ...>   Ferrox.Ivy.Functions.bitwise_and(Ferrox.tensor([1], type: :c64), 1)
      ...> end)
      ** (ArgumentError) Ferrox.Ivy.Functions.bitwise_and/2 doesn't support complex64 under jax 0.4.25, only int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, float16, float32, float64, bool; cast it, or let Ferrox.Ivy.Casting.with_casting/2 do so

  """
  @spec bitwise_and(Ivy.input(), Ivy.input()) :: Tensor.t()
  @kernel :bitwise_and
  @unsupported_dtypes [
    numpy: [{"1.26.3 and below", ["complex"]}],
    jax: [{"0.4.25 and below", ["complex"]}]
  ]
  def bitwise_and(x1, x2), do: binary(x1, x2, &Ferrox.bitwise_and/2)

  @doc """
  Returns the values, limited to the bounds `x_min` and `x_max`.

  ## Examples

      iex> Ferrox.Ivy.Functions.clip(Ferrox.tensor([1, 5, 9]), 2, 8) |> Ferrox.to_list()
      [2, 5, 8]

  """
  @spec clip(Tensor.t(), Ivy.input(), Ivy.input()) :: Tensor.t()
  @kernel :clip
  def clip(x, x_min, x_max) do
    {x, x_min} = Ivy.promote_types_of_inputs(x, x_min)
    {x, x_max} = Ivy.promote_types_of_inputs(x, x_max)
    with_ivy_promotion(fn -> Ferrox.clip(x, Ivy.astype(x_min, x.type), x_max) end)
  end

  @doc """
  Returns the cosines. Integers are cast to the default float first, under every backend.

  ## Examples

      iex> Ferrox.Ivy.Functions.cos(Ferrox.tensor([0], type: :u8))
      #Ferrox.Tensor<
        f32[1]
        [1.0]
      >

  """
  @spec cos(Tensor.t()) :: Tensor.t()
  def cos(x), do: real(x, &Ferrox.cos/1)

  @doc """
  Returns the exponential of x minus one.

  ## Examples

      iex> Ferrox.Ivy.Functions.expm1(Ferrox.tensor([0.0])) |> Ferrox.to_list()
      [0.0]

  """
  @spec expm1(Tensor.t()) :: Tensor.t()
  @unsupported_dtypes [torch: [{"2.0.1 and below", ["float16", "complex"]}]]
  def expm1(x), do: real(x, &Ferrox.expm1/1)

  @doc """
  Returns the smaller of two values. If one of them is NaN, returns the other one.

  ## Examples

      iex> x = Ferrox.tensor([1.0, :nan, 3.0, :nan])
      iex> Ferrox.Ivy.Functions.fmin(x, Ferrox.tensor([2.0, 2.0, :nan, :nan])) |> Ferrox.to_list()
      [1.0, 2.0, 3.0, :nan]

  """
  @spec fmin(Ivy.input(), Ivy.input()) :: Tensor.t()
  @kernel :min
  @supported_dtypes [tensorflow: [{"2.13.0 and below", ["float"]}]]
  def fmin(x1, x2) do
    binary(x1, x2, fn x1, x2 ->
      left = Ferrox.select(Ferrox.is_nan(x1), x2, x1)
      Ferrox.min(left, Ferrox.select(Ferrox.is_nan(x2), left, x2))
    end)
  end

  @doc """
  Returns the quotients, rounded down.

  ## Examples

      iex> Ferrox.Ivy.Functions.floor_divide(Ferrox.tensor([7, -7]), 2) |> Ferrox.to_list()
      [3, -4]
      iex> Ferrox.Ivy.Functions.floor_divide(Ferrox.tensor([7.0, -7.0]), 2) |> Ferrox.to_list()
      [3.0, -4.0]

  """
  @spec floor_divide(Ivy.input(), Ivy.input()) :: Tensor.t()
  @unsupported_dtypes [
    numpy: [{"1.26.3 and below", ["complex"]}],
    jax: [{"0.4.25 and below", ["complex"]}],
    tensorflow: [{"2.13.0 and below", ["complex"]}],
    ferrox: ["complex"]
  ]
  def floor_divide(x1, x2) do
    binary(x1, x2, fn
      %Tensor{type: {kind, _}} = x1, x2 when kind in [:s, :u] ->
        quotient = Ferrox.quotient(x1, x2)
        remainder = Ferrox.subtract(x1, Ferrox.multiply(quotient, x2))
        signs_differ = Ferrox.not_equal(Ferrox.less(remainder, 0), Ferrox.less(x2, 0))
        # Ferrox.quotient/2 rounds towards zero. That is upwards if the signs differ.
        rounded_up = Ferrox.logical_and(Ferrox.not_equal(remainder, 0), signs_differ)
        Ferrox.subtract(quotient, Ferrox.as_type(rounded_up, x1.type))

      x1, x2 ->
        Ferrox.floor(Ferrox.divide(x1, x2))
    end)
  end

  @doc """
  Returns the greatest common divisors.

  ## Examples

      iex> Ferrox.Ivy.Functions.gcd(Ferrox.tensor([12, -18, 0]), Ferrox.tensor([8, 12, 5])) |> Ferrox.to_list()
      [4, 6, 5]

  """
  @spec gcd(Ivy.input(), Ivy.input()) :: Tensor.t()
  @kernel :remainder
  @unsupported_dtypes [ferrox: ["float", "complex"]]
  @unsupported_device_and_dtypes [
    paddle: [{"2.6.0 and below", [cpu: ["int8", "int16", "uint8"]]}]
  ]
  def gcd(x1, x2), do: binary(x1, x2, &Ferrox.abs(euclidean_gcd(&1, &2)))

  # Euclid's algorithm on all pairs at once, until every pair is done. The results may be negative.
  defp euclidean_gcd(a, b) do
    done = Ferrox.equal(b, 0)

    if Ferrox.to_number(Ferrox.all(done)) in [1, true] do
      a
    else
      remainder = Ferrox.remainder(a, Ferrox.select(done, 1, b))
      euclidean_gcd(Ferrox.select(done, a, b), Ferrox.select(done, b, remainder))
    end
  end

  @doc """
  Returns the least common multiples.

  ## Examples

      iex> Ferrox.Ivy.Functions.lcm(Ferrox.tensor([4, 0]), Ferrox.tensor([6, 5])) |> Ferrox.to_list()
      [12, 0]

  The function supports no float under torch, so crosscasting uses the default integer:

      iex> x = Ferrox.tensor([4.0], type: :f16)
      iex> Ferrox.Ivy.Profile.with_backend({:torch, "2.0.1"}, fn ->
      ...>   Ferrox.Ivy.Casting.with_casting(:cross, fn -> Ferrox.Ivy.Functions.lcm(x, x).type end)
      ...> end)
      {:s, 32}

  """
  @spec lcm(Ivy.input(), Ivy.input()) :: Tensor.t()
  @kernel :remainder
  @unsupported_dtypes [
    torch: [{"2.0.1 and below", ["float"]}],
    ferrox: ["float", "complex"]
  ]
  def lcm(x1, x2) do
    binary(x1, x2, fn x1, x2 ->
      divisor = Ferrox.abs(euclidean_gcd(x1, x2))
      divisor = Ferrox.select(Ferrox.equal(divisor, 0), 1, divisor)
      Ferrox.abs(Ferrox.multiply(Ferrox.quotient(x1, divisor), x2))
    end)
  end

  @doc """
  Returns whether the elements are zero. They are cast to bool first, so every type is supported.

  ## Examples

      iex> Ferrox.Ivy.Functions.logical_not(Ferrox.tensor([0.0, 0.5])) |> Ferrox.as_type(:u8) |> Ferrox.to_list()
      [1, 0]

  """
  @spec logical_not(Tensor.t()) :: Tensor.t()
  @kernel :logical_not
  def logical_not(x), do: with_ivy_promotion(fn -> Ferrox.logical_not(x) end)

  ## Reductions and products

  @doc """
  Returns the sum of all elements, in their type or in the type `dtype:`.

  ## Examples

      iex> Ferrox.Ivy.Functions.sum(Ferrox.tensor([1, 2], type: :s8))
      #Ferrox.Tensor<
        s8
        3
      >
      iex> Ferrox.Ivy.Functions.sum(Ferrox.tensor([1, 2], type: :s8), dtype: "float64").type
      {:f, 64}

  """
  @spec sum(Tensor.t(), keyword) :: Tensor.t()
  @kernel :sum
  def sum(x, opts \\ []), do: reduce(x, Default.infer_dtype([x], opts), &Ferrox.sum/1)

  @doc """
  Returns the product of all elements, in the type `dtype:`, else in the wider one of their type and
  the default type of their kind.

  ## Examples

      iex> for type <- [:u8, :s64, :f16], do: Ferrox.Ivy.Functions.prod(Ferrox.tensor([2, 3], type: type)).type
      [{:u, 32}, {:s, 64}, {:f, 32}]

  """
  @spec prod(Tensor.t(), keyword) :: Tensor.t()
  @kernel :product
  @unsupported_dtypes [torch: ["uint8"]]
  def prod(x, opts \\ []) do
    type = if opts[:dtype], do: Dtype.new!(opts[:dtype]), else: product_type(Ivy.dtype(x))
    reduce(x, type, &Ferrox.product/1)
  end

  # The type of a product by the array API standard, which is wide to avoid overflows.
  defp product_type(type) do
    default = Default.infer_default_dtype(type)
    if Dtype.bits(type) < Dtype.bits(default), do: default, else: type
  end

  @doc """
  Returns the product of two matrices or vectors.

  ## Examples

      iex> Ferrox.Ivy.Functions.matmul(Ferrox.iota({2, 2}), Ferrox.eye(2)) |> Ferrox.to_list()
      [[0, 1], [2, 3]]

  """
  @spec matmul(Tensor.t(), Tensor.t()) :: Tensor.t()
  @kernel :dot
  @unsupported_dtypes [
    numpy: [{"1.26.3 and below", ["float16"]}],
    jax: [{"0.4.25 and below", ["bfloat16", "float16", "complex"]}]
  ]
  def matmul(x1, x2), do: binary(x1, x2, &Ferrox.dot/2)

  @doc """
  Returns the product of two tensors, summed over the given axes of each.

  ## Examples

      iex> Ferrox.Ivy.Functions.tensordot(Ferrox.iota({2, 3}), Ferrox.iota({2, 3}), {[0, 1], [0, 1]}) |> Ferrox.to_number()
      55

  """
  @spec tensordot(Tensor.t(), Tensor.t(), {[integer], [integer]}) :: Tensor.t()
  @kernel :dot
  @unsupported_dtypes [
    numpy: [{"1.26.3 and below", ["float16"]}],
    jax: [{"0.4.25 and below", ["complex"]}],
    torch: [{"2.0.1 and below", ["int32"]}]
  ]
  def tensordot(x1, x2, {left_axes, right_axes}) do
    binary(x1, x2, &Ferrox.dot(&1, left_axes, &2, right_axes))
  end

  ## Shared by all functions

  defp binary(x1, x2, fun) do
    {x1, x2} = Ivy.promote_types_of_inputs(x1, x2)
    with_ivy_promotion(fn -> fun.(x1, x2) end)
  end

  # Casts integers and bools to the default float first.
  defp real(%Tensor{type: type} = x, fun) do
    with_ivy_promotion(fn ->
      if type == :bool or type in Dtype.all(:int),
        do: x |> Ferrox.as_type(Default.default_float_dtype()) |> fun.(),
        else: fun.(x)
    end)
  end

  defp reduce(x, type, fun) do
    with_ivy_promotion(fn -> x |> Ferrox.as_type(type) |> fun.() |> Ferrox.as_type(type) end)
  end

  # Runs the function under Ivy's promotion system, which has bools.
  defp with_ivy_promotion(fun), do: Promotion.with(Ivy.promotion(), fun)
end
