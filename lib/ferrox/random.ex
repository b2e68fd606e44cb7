defmodule Ferrox.Random do
  @moduledoc since: "0.1.0"
  @moduledoc """
  Random numbers from a key, without a state: the same key gives the same numbers, in every process and on
  every machine.

  The generator is Threefry 2x32 of 20 rounds, and functions, keys and numbers are those of `Nx.Random`:
  each gives `{tensor, new_key}`, and the new key is for the next call.

      iex> key = Ferrox.Random.key(42)
      iex> {first, key} = Ferrox.Random.uniform(key, 0.0, 1.0, shape: {2})
      iex> {second, _key} = Ferrox.Random.uniform(key, 0.0, 1.0, shape: {2})
      iex> first == second
      false

  Types are those of the option `:type`, or else f32 (or what the numbers or tensors given are together) and
  s32 for integers, whatever promotion system is in effect.
  """

  import Ferrox.Operands, only: [options!: 3]

  alias Ferrox.{LinAlg, Native, Numbers, Operands, Promotion, Shape, Tensor, Type}
  alias Ferrox.Ops.{Create, Cumulative, Dot, Elementwise, Index, Reduce, Search, Sort}
  alias Ferrox.Ops.Shape, as: Shapes
  alias Ferrox.Random.Counts

  # Up to here every whole number is a float of 64 bits.
  @whole 2 ** 53

  @typedoc "A key: a u32 tensor of shape `{2}`."
  @type key :: Tensor.t()
  @typep operand :: Ferrox.operand()

  ## Keys

  @doc """
  The key of an integer.

  ## Examples

      iex> Ferrox.Random.key(999_999_999_999)
      #Ferrox.Tensor<
        u32[2]
        [232, 3567587327]
      >

  """
  @spec key(integer) :: key
  def key(seed) when is_integer(seed) and seed in -0x8000_0000_0000_0000..0xFFFF_FFFF_FFFF_FFFF do
    <<high::32, low::32>> = <<seed::64>>
    %Tensor{data: <<high::32-native, low::32-native>>, type: {:u, 32}, shape: {2}}
  end

  def key(other) do
    raise ArgumentError, "key expects an integer of 64 bits, got: #{inspect(other)}"
  end

  @doc """
  New keys, along a first axis.

  ## Options

    * `:parts` - how many; 2 by default

  ## Examples

      iex> Ferrox.Random.split(Ferrox.Random.key(1701)) |> Ferrox.to_list()
      [[56197195, 1801093307], [961309823, 1704866707]]

  """
  @spec split(key, keyword) :: Tensor.t()
  def split(key, opts \\ []) do
    opts = options!(opts, [:parts], :split)
    parts = opts |> Keyword.get(:parts, 2) |> Operands.positive!(":parts", :split)
    bits(key!(key, :split), {parts, 2})
  end

  @doc """
  The key that comes of a key and an integer, or the keys of a tensor of integers.

  ## Examples

      iex> Ferrox.Random.fold_in(Ferrox.Random.key(42), 99) |> Ferrox.to_list()
      [2015327502, 1351855566]

  """
  @spec fold_in(key, operand) :: Tensor.t()
  def fold_in(key, data) do
    key = key!(key, :fold_in)

    data =
      if is_integer(data),
        do: Create.tensor(data, type: {:s, 64}),
        else: Operands.to_tensor(data, :fold_in)

    unless match?({kind, _} when kind in [:s, :u], data.type) do
      raise ArgumentError, "fold_in expects integers, got: #{Promotion.Names.short(data.type)}"
    end

    %Tensor{shape: shape} = data = Elementwise.cast(data, {:u, 64})
    high = data |> then(&Elementwise.step(:right_shift, &1, 32)) |> Elementwise.cast({:u, 32})
    low = Elementwise.cast(data, {:u, 32})
    {first, second} = threefry(Shapes.flatten(high), Shapes.flatten(low), key)
    pairs = Shapes.join(:stack, [first, second], axis: -1, promotion: :nx)
    Shapes.reshape(pairs, Tuple.insert_at(shape, tuple_size(shape), 2))
  end

  ## Numbers

  @doc """
  Numbers of equal probability from 0.0 to below 1.0; see `uniform/4`.

  ## Examples

      iex> {number, _key} = Ferrox.Random.uniform(Ferrox.Random.key(1701))
      iex> Ferrox.to_number(number)
      0.9728643894195557

  """
  @spec uniform(key, keyword) :: {Tensor.t(), key}
  def uniform(key, opts \\ []), do: uniform(key, 0.0, 1.0, opts)

  @doc """
  Numbers of equal probability from `min_value` to below `max_value`. Of complex numbers, both parts.

  ## Options

    * `:shape` - that of the tensor; `{}` by default
    * `:type` - a float or complex type; f32 by default

  ## Examples

      iex> {tensor, _key} = Ferrox.Random.uniform(Ferrox.Random.key(1701), 0.0, 1.0, shape: {3, 2}, type: :f16)
      iex> tensor
      #Ferrox.Tensor<
        f16[3][2]
        [
          [0.754, 0.6484],
          [0.7295, 0.2148],
          [0.09766, 0.06934]
        ]
      >

  """
  @spec uniform(key, operand, operand, keyword) :: {Tensor.t(), key}
  def uniform(key, min_value, max_value, opts \\ []) do
    {key, next, type, shape} = sample!(:uniform, key, [min_value, max_value], opts)
    {parts(key, type, shape, &uniform_float(&1, &2, min_value, max_value, &3)), next}
  end

  @doc """
  Normally distributed numbers of mean 0 and standard deviation 1; see `normal/4`.

  ## Examples

      iex> {number, _key} = Ferrox.Random.normal(Ferrox.Random.key(42))
      iex> Ferrox.to_number(number)
      1.3694695234298706

  """
  @spec normal(key, keyword) :: {Tensor.t(), key}
  def normal(key, opts \\ []), do: normal(key, 0.0, 1.0, opts)

  @doc """
  Normally distributed numbers. Of complex numbers, both parts.

  ## Options

    * `:shape` - that of the tensor; `{}` by default
    * `:type` - a float or complex type; f32 by default

  ## Examples

      iex> {tensor, _key} = Ferrox.Random.normal(Ferrox.Random.key(1337), 10, 5, shape: {1000})
      iex> {Ferrox.to_number(Ferrox.mean(tensor)) > 9.5, Ferrox.to_number(Ferrox.mean(tensor)) < 10.5}
      {true, true}

  """
  @spec normal(key, operand, operand, keyword) :: {Tensor.t(), key}
  def normal(key, mean, standard_deviation, opts \\ []) do
    {key, next, type, shape} = sample!(:normal, key, [mean, standard_deviation], opts)

    numbers =
      parts(key, type, shape, fn key, type, shape ->
        normal = normal_float(key, type, shape)
        scaled = Elementwise.step(:multiply, constant(standard_deviation, type), normal)
        Elementwise.step(:add, scaled, constant(mean, type))
      end)

    {numbers, next}
  end

  @doc """
  Vectors of normally distributed numbers with means and covariances of their own, along the last axis.

  ## Options

    * `:shape` - how many vectors there are along the axes before the last one; `{}` by default
    * `:type` - a real float type; by default that of the means and the covariance together
    * `:method` - the factorization of the covariance: `:cholesky` by default, of a positive definite matrix;
      `:eigh` and `:svd` take one whose eigenvalues may be zero, too. What isn't such a matrix gives NaN

  ## Examples

      iex> {mean, covariance} = {Ferrox.tensor([0, 10]), Ferrox.tensor([[1, 0], [0, 4]])}
      iex> {tensor, _key} = Ferrox.Random.multivariate_normal(Ferrox.Random.key(12), mean, covariance, shape: {1000})
      iex> {tensor.shape, tensor.type}
      {{1000, 2}, {:f, 32}}
      iex> tensor |> Ferrox.mean(axes: [0]) |> Ferrox.round() |> Ferrox.to_list()
      [0.0, 10.0]

  """
  @spec multivariate_normal(key, operand, operand, keyword) :: {Tensor.t(), key}
  def multivariate_normal(key, mean, covariance, opts \\ []) do
    opts = options!(opts, [:shape, :type, :method], :multivariate_normal)
    {key, next} = pair(key!(key, :multivariate_normal))
    batch = Shape.validate!(Keyword.get(opts, :shape, {}), :multivariate_normal)
    type = type!(opts, [mean, covariance], :divide, :multivariate_normal)
    real_float!(type, :multivariate_normal)
    method = method!(Keyword.get(opts, :method, :cholesky))

    [mean, covariance] =
      for t <- [mean, covariance], do: Operands.tensor!(t, :nx, :multivariate_normal)

    size = covariance!(mean.shape, covariance.shape)
    [mean, covariance] = for t <- [mean, covariance], do: Elementwise.cast(t, type)
    shape = Tuple.insert_at(batch, tuple_size(batch), size)
    numbers = key |> normal_float(type, shape) |> Shapes.reshape({:auto, size})
    moved = Dot.dot_axes({numbers, [1], []}, {root(method, covariance), [1], []}, promotion: :nx)
    {mean |> then(&Elementwise.step(:add, &1, moved)) |> Shapes.reshape(shape), next}
  end

  defp method!(method) when method in [:cholesky, :eigh, :svd], do: method

  defp method!(other) do
    raise ArgumentError,
          "multivariate_normal: :method must be :cholesky, :eigh or :svd, got: #{inspect(other)}"
  end

  defp covariance!({size}, {size, size}), do: size

  defp covariance!(mean, covariance) do
    raise ArgumentError,
          "multivariate_normal expects a vector of means and a square matrix of their covariances, got shapes " <>
            "#{inspect(mean)} and #{inspect(covariance)}"
  end

  # A matrix whose product with its transpose is the covariance.
  defp root(:cholesky, covariance), do: LinAlg.cholesky(covariance, promotion: :nx)

  defp root(:eigh, covariance) do
    {values, vectors} = LinAlg.eigh(covariance, promotion: :nx)
    Elementwise.step(:multiply, vectors, Elementwise.step(:sqrt, values))
  end

  defp root(:svd, covariance) do
    {vectors, values, _} = LinAlg.svd(covariance, promotion: :nx)
    Elementwise.step(:multiply, vectors, Elementwise.step(:sqrt, values))
  end

  @doc """
  Numbers of Gumbel's distribution, of location 0 and scale 1: the largest of many numbers of a normal or an
  exponential distribution are distributed like this.

  ## Options

    * `:shape` - that of the tensor; `{}` by default
    * `:type` - a real float type; f32 by default

  ## Examples

      iex> {tensor, _key} = Ferrox.Random.gumbel(Ferrox.Random.key(1), shape: {2000})
      iex> # The mean is Euler's constant.
      iex> abs(Ferrox.to_number(Ferrox.mean(tensor)) - 0.5772) < 0.05
      true

  """
  @spec gumbel(key, keyword) :: {Tensor.t(), key}
  def gumbel(key, opts \\ []) do
    {key, next, type, shape} = sample!(:gumbel, key, [1.0], opts)
    real_float!(type, :gumbel)
    {gumbel_float(key, type, shape), next}
  end

  @doc """
  Exponentially distributed numbers of scale 1: see `exponential/3`.

  ## Examples

      iex> {tensor, _key} = Ferrox.Random.exponential(Ferrox.Random.key(5), shape: {2000})
      iex> abs(Ferrox.to_number(Ferrox.mean(tensor)) - 1) < 0.05
      true

  """
  @spec exponential(key, keyword) :: {Tensor.t(), key}
  def exponential(key, opts \\ []), do: exponential(key, 1.0, opts)

  @doc """
  Exponentially distributed numbers, of which the scale is the mean: a number or a tensor that broadcasts to the
  shape. They are computed in 64 bits, so that rare large ones are there, whatever the type is. Nx has no such
  function.

  ## Options

    * `:shape` - that of the tensor; `{}` by default
    * `:type` - a real float type; f32 by default

  ## Examples

      iex> {tensor, _key} = Ferrox.Random.exponential(Ferrox.Random.key(5), Ferrox.tensor([1, 50]), shape: {1000, 2})
      iex> tensor |> Ferrox.mean(axes: [0]) |> Ferrox.round(decimals: -1) |> Ferrox.to_list()
      [0.0, 50.0]

  """
  @spec exponential(key, operand, keyword) :: {Tensor.t(), key}
  def exponential(key, scale, opts) do
    {key, next, type, shape} = sample!(:exponential, key, [scale], opts)
    real_float!(type, :exponential)
    scale = parameter!(scale, shape, :exponential, "the scale")
    uniform = uniform_float(key, {:f, 64}, 0.0, 1.0, shape)
    logarithm = Elementwise.step(:log1p, Elementwise.step(:negate, uniform))
    numbers = Elementwise.step(:multiply, Elementwise.step(:negate, logarithm), scale)
    {Elementwise.cast(numbers, type), next}
  end

  @doc """
  How many events there are where `rate` are expected: integers of Poisson's distribution. The rate is a number or
  a tensor that broadcasts to the shape. Nx has no such function.

  ## Options

    * `:shape` - that of the tensor; `{}` by default
    * `:type` - an integer type; s32 by default. Numbers that it doesn't hold raise

  ## Examples

      iex> {tensor, _key} = Ferrox.Random.poisson(Ferrox.Random.key(5), Ferrox.tensor([0, 3, 400]), shape: {9000, 3})
      iex> tensor.type
      {:s, 32}
      iex> tensor |> Ferrox.mean(axes: [0]) |> Ferrox.round() |> Ferrox.to_list()
      [0.0, 3.0, 400.0]

  """
  @spec poisson(key, operand, keyword) :: {Tensor.t(), key}
  def poisson(key, rate, opts \\ []) do
    {key, next, type, shape} = integers!(:poisson, key, opts)
    rate = parameter!(rate, shape, :poisson, "the rate")
    at_most!(rate, @whole, :poisson, "the rate")
    {key |> Counts.poisson(rate) |> fit_integers!(type, :poisson), next}
  end

  @doc """
  The number of trials that succeed, each with the same probability: integers of the binomial distribution.
  Both are numbers or tensors that broadcast to the shape. Nx has no such function.

  ## Options

    * `:shape` - that of the tensor; `{}` by default
    * `:type` - an integer type; s32 by default. Numbers that it doesn't hold raise

  ## Examples

      iex> {tensor, _key} = Ferrox.Random.binomial(Ferrox.Random.key(5), 10, 0.3, shape: {9000})
      iex> {Ferrox.to_number(Ferrox.reduce_min(tensor)) >= 0, Ferrox.to_number(Ferrox.reduce_max(tensor)) <= 10}
      {true, true}
      iex> tensor |> Ferrox.mean() |> Ferrox.round(decimals: 1) |> Ferrox.to_number()
      3.0

  """
  @spec binomial(key, operand, operand, keyword) :: {Tensor.t(), key}
  def binomial(key, trials, probability, opts \\ []) do
    {key, next, type, shape} = integers!(:binomial, key, opts)
    trials = parameter!(trials, shape, :binomial, "the number of trials")
    probability = parameter!(probability, shape, :binomial, "the probability")

    at_most!(trials, @whole, :binomial, "the number of trials")
    at_most!(probability, 1, :binomial, "the probability")

    unless Reduce.step(:all, Elementwise.step(:equal, trials, Elementwise.step(:floor, trials))).data ==
             <<1>> do
      raise ArgumentError, "binomial: the number of trials must be whole"
    end

    {key |> Counts.binomial(trials, probability) |> fit_integers!(type, :binomial), next}
  end

  defp at_most!(number, limit, name, what) do
    [most] = Ferrox.to_flat_list(Reduce.step(:reduce_max, number))

    if most > limit do
      raise ArgumentError, "#{name}: #{what} must be at most #{limit}, got: #{most}"
    end
  end

  # The key for the numbers, the key that is given back, the type and the shape.
  defp integers!(name, key, opts) do
    opts = options!(opts, [:shape, :type], name)
    {key, next} = pair(key!(key, name))
    shape = Shape.validate!(Keyword.get(opts, :shape, {}), name)
    {key, next, integer_type!(type!(opts, [1], :select, name), name), shape}
  end

  defp integer_type!({kind, bits} = type, _name) when kind in [:s, :u] and bits >= 8, do: type

  defp integer_type!(type, name) do
    raise ArgumentError,
          "#{name}: :type must be an integer type of at least 8 bits, got: #{Promotion.Names.short(type)}"
  end

  # A parameter of a distribution, in f64 and in the shape of the numbers.
  defp parameter!(parameter, shape, name, what) do
    parameter = Operands.check!(parameter, name)

    if is_struct(parameter, Tensor) and parameter.type != :bool and Type.complex?(parameter.type),
      do:
        raise(
          ArgumentError,
          "#{name}: #{what} must be real, got: #{Promotion.Names.short(parameter.type)}"
        )

    number = parameter |> constant({:f, 64}) |> fit!(shape, name)

    [least, most] =
      for op <- [:reduce_min, :reduce_max], do: hd(Ferrox.to_flat_list(Reduce.step(op, number)))

    # NaN and infinities are atoms.
    unless is_float(least) and least >= 0 and is_float(most) do
      raise ArgumentError,
            "#{name}: #{what} must be finite and not negative, got from #{inspect(least)} to #{inspect(most)}"
    end

    Shapes.broadcast(number, shape, [])
  end

  defp fit_integers!(numbers, type, name) do
    [most] = Ferrox.to_flat_list(Reduce.step(:reduce_max, numbers))
    {_least, limit} = Numbers.integer_range(type)

    if trunc(most) > limit do
      raise ArgumentError,
            "#{name}: #{trunc(most)} does not fit #{Promotion.Names.short(type)}; give a wider :type"
    end

    Elementwise.cast(numbers, type)
  end

  defp gumbel_float(key, type, shape) do
    least = %Tensor{data: Type.smallest_positive_normal_binary(type), type: type, shape: {}}
    minus_log = &Elementwise.step(:negate, Elementwise.step(:log, &1))
    key |> uniform_float(type, least, 1, shape) |> minus_log.() |> minus_log.()
  end

  defp real_float!(type, name) do
    unless Type.float?(type) and not Type.complex?(type) do
      raise ArgumentError,
            "#{name}: :type must be a real float type, got: #{Promotion.Names.short(type)}"
    end
  end

  @doc """
  Integers of equal probability from `min_value` to below `max_value`.

  ## Options

    * `:shape` - that of the tensor; `{}` by default
    * `:type` - an integer type; s32 by default

  ## Examples

      iex> {tensor, _key} = Ferrox.Random.randint(Ferrox.Random.key(1701), 1, 100, shape: {3, 2}, type: :u32)
      iex> Ferrox.to_list(tensor)
      [[9, 20], [19, 6], [71, 15]]

  """
  @spec randint(key, operand, operand, keyword) :: {Tensor.t(), key}
  def randint(key, min_value, max_value, opts \\ []) do
    opts = options!(opts, [:shape, :type], :randint)
    {key, next} = pair(key!(key, :randint))
    shape = Shape.validate!(Keyword.get(opts, :shape, {}), :randint)
    type = type!(opts, [min_value, max_value], :select, :randint)
    {_, bits} = type = integer_type!(type, :randint)

    [min, max] =
      for limit <- [min_value, max_value], do: limit |> constant(type) |> fit!(shape, :randint)

    empty? = Reduce.step(:reduce_max, Elementwise.step(:greater_equal, min, max))

    if empty?.data == <<1>> do
      raise ArgumentError, "randint: max_value must be greater than min_value"
    end

    span = Elementwise.cast(Elementwise.step(:subtract, max, min), {:u, bits})
    high_low = random_bits(key, Tuple.insert_at(shape, 0, 2), bits)
    [high, low] = for i <- [0, 1], do: Index.fetch(high_low, i)

    wide = Elementwise.cast(span, {:u, 64})
    remainder = &Elementwise.step(:remainder, &1, wide)
    product = &Elementwise.step(:multiply, &1, &2)

    # A number of twice the bits, the high ones times two to the power of the bits and the low ones.
    half = remainder.(constant(Bitwise.bsl(1, div(bits, 2)), {:u, 64}))
    power = remainder.(product.(half, half))
    [high, low] = for part <- [high, low], do: part |> Elementwise.cast({:u, 64}) |> remainder.()
    offset = remainder.(Elementwise.step(:add, product.(high, power), low))
    sum = Elementwise.step(:add, min, Elementwise.cast(offset, type))
    {Elementwise.cast(Shapes.broadcast(sum, shape, []), type), next}
  end

  @doc """
  The parts of a tensor along an axis in random order.

  ## Options

    * `:axis` - 0 by default
    * `:independent` - whether each row along the axis has an order of its own; `false` by default

  ## Examples

      iex> {tensor, _key} = Ferrox.Random.shuffle(Ferrox.Random.key(42), Ferrox.iota({3, 4}, axis: 0))
      iex> Ferrox.to_list(tensor)
      [[2, 2, 2, 2], [0, 0, 0, 0], [1, 1, 1, 1]]

  """
  @spec shuffle(key, operand, keyword) :: {Tensor.t(), key}
  def shuffle(key, tensor, opts \\ []) do
    opts = options!(opts, [:axis, :independent], :shuffle)
    key = key!(key, :shuffle)
    tensor = Operands.to_tensor(tensor, :shuffle)
    axis = Shape.axis!(tensor.shape, Keyword.get(opts, :axis, 0), :shuffle)

    if Operands.boolean!(opts, :independent, :shuffle) do
      shuffled(key, tensor, axis)
    else
      order = Create.iota({elem(tensor.shape, axis)}, promotion: :nx)
      {order, next} = shuffled(key, order, 0)
      {Index.take(tensor, order, axis: axis), next}
    end
  end

  # Sorted by random keys, so often that equal ones hardly matter.
  defp shuffled(key, %Tensor{shape: shape} = tensor, axis) do
    rounds = ceil(3 * :math.log(Native.size(shape)) / :math.log(0xFFFF_FFFF))

    Enum.reduce(1..rounds//1, {tensor, key}, fn _, {tensor, key} ->
      {key, next} = pair(key)
      order = Sort.argsort(random_bits(key, shape, 32), axis: axis, promotion: :nx)
      {Index.take_along_axis(tensor, order, axis: axis), next}
    end)
  end

  @doc """
  Some of the elements of a tensor, or of its parts along an axis, each with the same probability; see
  `choice/4`, which has the options. With a tensor of probabilities in place of options, `choice/4` without
  any.

  ## Examples

      iex> {tensor, _key} = Ferrox.Random.choice(Ferrox.Random.key(1), Ferrox.iota({4, 3}), samples: 4, axis: 0)
      iex> Ferrox.to_list(tensor)
      [[6, 7, 8], [9, 10, 11], [6, 7, 8], [0, 1, 2]]

  """
  @spec choice(key, operand, keyword | Tensor.t()) :: {Tensor.t(), key}
  def choice(key, tensor, opts \\ [])
  def choice(key, tensor, %Tensor{} = weights), do: choice(key, tensor, weights, [])

  def choice(key, tensor, opts) do
    {tensor, axis, samples, replace?} = choice!(tensor, opts)
    size = elem(tensor.shape, axis)

    if replace? do
      {places, next} = randint(key!(key, :choice), 0, size, shape: {samples}, type: :u32)
      {Index.take(tensor, places, axis: axis), next}
    else
      few!(samples, size)
      {shuffled, next} = shuffle(key!(key, :choice), tensor, axis: axis)
      {Index.slice_along_axis(shuffled, 0, samples, axis: axis), next}
    end
  end

  @doc """
  Some of the elements of a tensor, or of its parts along an axis, with a probability for each: a vector of
  floats, of which none is negative. They count in relation to their sum, which need not be one.

  ## Options

    * `:samples` - how many; 1 by default
    * `:replace` - whether the same one may come again; `true` by default. If not, there are at most as many
      samples as elements, or probabilities above zero
    * `:axis` - the axis along which they lie; by default the tensor is flattened

  ## Examples

      iex> weights = Ferrox.tensor([0.1, 0.7, 0.2])
      iex> {tensor, key} = Ferrox.Random.choice(Ferrox.Random.key(1), Ferrox.iota({4, 3}), weights, samples: 3, axis: 1)
      iex> Ferrox.to_list(tensor)
      [[1, 0, 1], [4, 3, 4], [7, 6, 7], [10, 9, 10]]
      iex> Ferrox.Random.choice(key, Ferrox.iota({3}), weights, samples: 4, replace: false)
      ** (ArgumentError) choice: 4 samples can't be taken of 3 without replacement

  """
  @spec choice(key, operand, Tensor.t(), keyword) :: {Tensor.t(), key}
  def choice(key, tensor, weights, opts) do
    {tensor, axis, samples, replace?} = choice!(tensor, opts)
    {this, next} = pair(key!(key, :choice))
    weights = weights!(weights, elem(tensor.shape, axis))

    places =
      if replace? do
        weighted(this, weights, samples)
      else
        some = Elementwise.cast(Elementwise.step(:not_equal, weights, 0), {:s, 64})
        [possible] = Ferrox.to_flat_list(Reduce.step(:sum, some))
        few!(samples, possible)

        this |> shuffled_by(weights) |> Shapes.slice([0], [samples], [])
      end

    {Index.take(tensor, places, axis: axis), next}
  end

  # The tensor whose parts along an axis are chosen from, the axis, how many are chosen, and whether they may
  # come again.
  defp choice!(tensor, opts) do
    opts = options!(opts, [:samples, :replace, :axis], :choice)
    tensor = Operands.to_tensor(tensor, :choice)
    tensor = if opts[:axis] == nil, do: Shapes.flatten(tensor), else: tensor
    axis = Shape.axis!(tensor.shape, opts[:axis] || 0, :choice)
    samples = opts |> Keyword.get(:samples, 1) |> Operands.positive!(":samples", :choice)
    replace? = Operands.boolean!(Keyword.put_new(opts, :replace, true), :replace, :choice)
    {tensor, axis, samples, replace?}
  end

  defp few!(samples, most) do
    if samples > most do
      raise ArgumentError,
            "choice: #{samples} samples can't be taken of #{most} without replacement"
    end
  end

  defp weights!(%Tensor{shape: {size}, type: type} = weights, size) do
    unless type != :bool and Type.float?(type) and not Type.complex?(type) do
      raise ArgumentError,
            "choice: probabilities must be floats, got: #{Promotion.Names.short(type)}"
    end

    [least, sum] =
      for op <- [:reduce_min, :sum], do: hd(Ferrox.to_flat_list(Reduce.step(op, weights)))

    # NaN and infinities are atoms.
    unless is_float(least) and least >= 0 and is_float(sum) and sum > 0 do
      raise ArgumentError,
            "choice: probabilities must be finite, none of them negative and one above zero, got from " <>
              "#{inspect(least)} on, of the sum #{inspect(sum)}"
    end

    weights
  end

  defp weights!(weights, size) do
    got =
      if is_struct(weights, Tensor), do: "shape #{inspect(weights.shape)}", else: inspect(weights)

    raise ArgumentError, "choice: expected a tensor of #{size} probabilities, got: #{got}"
  end

  # The sums of the weights divide the line up to their total, on which numbers are equally distributed.
  defp weighted(key, %Tensor{type: type} = weights, samples) do
    sums = Cumulative.cumulative(:cumulative_sum, weights, promotion: :nx)
    total = Index.fetch(sums, -1)
    uniform = uniform_float(key, type, 0.0, 1.0, {samples})

    number =
      Elementwise.step(
        :multiply,
        total,
        Elementwise.step(:subtract, constant(1.0, type), uniform)
      )

    places = Search.searchsorted(sums, number, side: :right, promotion: :nx)
    # The total itself is not below any of the sums, and belongs to the first one that reaches it.
    Elementwise.step(:min, places, Search.searchsorted(sums, total, promotion: :nx))
  end

  # The indices in random order, those of larger weights sooner: sorted by numbers of Gumbel's distribution
  # that are moved by the logarithms of the weights.
  defp shuffled_by(key, %Tensor{type: type, shape: shape} = weights) do
    gumbel = gumbel_float(key, type, shape)

    moved =
      Elementwise.step(
        :subtract,
        Elementwise.step(:negate, gumbel),
        Elementwise.step(:log, weights)
      )

    Sort.argsort(moved, promotion: :nx)
  end

  ## Types and operands

  # The key for the numbers, the key that is given back, the type and the shape.
  defp sample!(name, key, operands, opts) do
    opts = options!(opts, [:shape, :type], name)
    {key, next} = pair(key!(key, name))
    shape = Shape.validate!(Keyword.get(opts, :shape, {}), name)
    {_, bits} = type = type!(opts, operands, :divide, name)

    unless Type.float?(type) do
      raise ArgumentError,
            "#{name}: :type must be a float or complex type, got: #{Promotion.Names.short(type)}"
    end

    real = if Type.complex?(type), do: {:f, div(bits, 2)}, else: type
    for operand <- operands, do: operand |> constant(real) |> fit!(shape, name)
    {key, next, type, shape}
  end

  # The type of the option, or that of the operands by the rule of `op`.
  defp type!(opts, operands, op, name) do
    if opts[:type],
      do: opts[:type] |> Operands.type!(name) |> number_type!(name),
      else:
        Promotion.type_as(:nx, op, name, for(x <- operands, do: Operands.tensor!(x, :nx, name)))
  end

  defp number_type!(:bool, name), do: raise(ArgumentError, "#{name}: numbers are no bool")
  defp number_type!(type, _name), do: type

  # An operand in the type of the result.
  defp constant(%Tensor{} = tensor, type), do: Elementwise.cast(tensor, type)

  defp constant(number, type),
    do: %Tensor{data: Numbers.encode([number], type, :random), type: type, shape: {}}

  defp fit!(%Tensor{shape: given} = operand, shape, name) do
    unless Shape.broadcast(given, shape) == shape do
      raise ArgumentError,
            "#{name}: a tensor of shape #{inspect(given)} does not broadcast to the :shape #{inspect(shape)}"
    end

    operand
  end

  defp key!(%Tensor{type: {:u, 32}, shape: {2}} = key, _name), do: key

  defp key!(other, name) do
    raise ArgumentError,
          "#{name} expects a key, as Ferrox.Random.key/1 makes it, got: #{inspect(other)}"
  end

  # The key for this call, and the one that is given back.
  defp pair(key) do
    <<next::binary-8, this::binary-8>> = bits(key, {2, 2}).data
    {%{key | data: this}, %{key | data: next}}
  end

  ## Floats

  # Both parts of a complex number lie side by side.
  defp parts(key, {:c, bits} = type, shape, fun) do
    pairs = fun.(key, {:f, div(bits, 2)}, Tuple.insert_at(shape, tuple_size(shape), 2))
    %{pairs | type: type, shape: shape}
  end

  defp parts(key, type, shape, fun), do: fun.(key, type, shape)

  # Random bits in the mantissa of a number from one to below two, less one.
  defp uniform_float(key, {_, bits} = type, min, max, shape) do
    [min, max] = for limit <- [min, max], do: constant(limit, type)
    one = constant(1.0, type)

    key
    |> random_bits(shape, bits)
    |> then(&Elementwise.step(:right_shift, &1, constant(bits - mantissa(type), {:u, bits})))
    |> then(&Elementwise.step(:bitwise_or, &1, Elementwise.bitcast(one, {:u, bits})))
    |> Elementwise.bitcast(type)
    |> then(&Elementwise.step(:subtract, &1, one))
    |> then(&Elementwise.step(:multiply, &1, Elementwise.step(:subtract, max, min)))
    |> then(&Elementwise.step(:add, &1, min))
    |> then(&Elementwise.step(:max, &1, min))
  end

  # Of mean 0 and standard deviation 1.
  defp normal_float(key, type, shape) do
    uniform = uniform_float(key, type, after_minus_one(type), 1, shape)
    root = :sqrt |> Elementwise.step(constant(2, type))
    Elementwise.step(:multiply, root, Elementwise.step(:erf_inv, uniform))
  end

  # The number that follows -1, towards zero.
  defp after_minus_one({_, bits} = type) do
    minus_one = Elementwise.bitcast(constant(-1.0, type), {:u, bits})

    minus_one
    |> then(&Elementwise.step(:subtract, &1, constant(1, {:u, bits})))
    |> Elementwise.bitcast(type)
  end

  # The number of bits of a mantissa.
  defp mantissa({:f, 8}), do: 2
  defp mantissa({:f8_e4m3fn, 8}), do: 3
  defp mantissa({:bf, 16}), do: 7
  defp mantissa({:f, 16}), do: 10
  defp mantissa({:f, 32}), do: 23
  defp mantissa({:f, 64}), do: 52

  ## Threefry

  defp random_bits(key, shape, 64) do
    words = key |> bits({2, Native.size(shape)}) |> Elementwise.cast({:u, 64})
    [high, low] = for i <- [0, 1], do: Index.fetch(words, i)

    Shapes.reshape(
      Elementwise.step(:bitwise_or, Elementwise.step(:left_shift, high, 32), low),
      shape
    )
  end

  defp random_bits(key, shape, bits), do: key |> bits(shape) |> Elementwise.cast({:u, bits})

  # So many words of 32 bits. An odd number is one less than the next even one.
  defp bits(key, shape) do
    size = Native.size(shape)
    half = div(size + 1, 2)
    count = Native.iota({:u, 32}, {half}, nil)
    first = %Tensor{data: count, type: {:u, 32}, shape: {half}}
    second = Elementwise.step(:add, first, constant(half, {:u, 32}))

    second =
      if rem(size, 2) == 1,
        do:
          Index.put_slice(second, [half - 1], constant(0, {:u, 32}) |> Shapes.reshape({1}),
            promotion: :nx
          ),
        else: second

    {first, second} = threefry(first, second, key)
    words = Shapes.join(:concatenate, [first, second], promotion: :nx)
    words |> Shapes.slice([0], [size], []) |> Shapes.reshape(shape)
  end

  @rotations {[13, 15, 26, 6], [17, 29, 16, 24]}

  # The block cipher on pairs of words: 20 rounds, with a part of the key added after each four.
  defp threefry(first, second, %Tensor{data: <<key1::32-native, key2::32-native>>}) do
    keys = {key1, key2, key1 |> Bitwise.bxor(key2) |> Bitwise.bxor(0x1BD11BDA)}
    pair = {add(first, key1), add(second, key2)}

    Enum.reduce(1..5, pair, fn i, pair ->
      {a, b} = Enum.reduce(elem(@rotations, rem(i - 1, 2)), pair, &round/2)
      {add(a, elem(keys, rem(i, 3))), add(b, elem(keys, rem(i + 1, 3)) + i)}
    end)
  end

  defp round(rotation, {a, b}) do
    a = Elementwise.step(:add, a, b)
    left = Elementwise.step(:left_shift, b, rotation)
    right = Elementwise.step(:right_shift, b, 32 - rotation)
    {a, Elementwise.step(:bitwise_xor, Elementwise.step(:bitwise_or, left, right), a)}
  end

  defp add(words, number),
    do: Elementwise.step(:add, words, constant(Bitwise.band(number, 0xFFFF_FFFF), {:u, 32}))
end
