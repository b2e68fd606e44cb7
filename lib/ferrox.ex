defmodule Ferrox do
  @moduledoc since: "0.1.0"
  @moduledoc """
  Tensors on a native CPU backend, without any dependency.

  This is the direct API: names, argument order and semantics are Nx's, so what
  you know of `Nx` holds, but there is no `defn`, and no names or vectorized
  axes. Where Nx is there, `Ferrox.Backend` runs Nx itself on the same native
  code, and `from_nx/1` and `to_nx/1` go from one to the other without a copy.
  This module is also the name of the compiler of `Nx.Defn` functions:
  `Nx.Defn.jit(fun, compiler: Ferrox)`, see `Ferrox.Defn`.

      iex> t = Ferrox.tensor([[1, 2], [3, 4]])
      iex> Ferrox.add(t, Ferrox.tensor([10, 20]))
      #Ferrox.Tensor<
        s32[2][2]
        [
          [11, 22],
          [13, 24]
        ]
      >

  ## Types

  Types are written as in Nx, `{:f, 32}` or `:f32`; see `Ferrox.Type`. What type
  results from several is asked of `Ferrox.Promotion`, under the system `:nx`
  unless another is in effect, or is named by the option `:promotion`, which
  every function takes whose result's type depends on it:

      iex> Ferrox.add(Ferrox.tensor([1]), Ferrox.tensor([0.5])) |> Ferrox.type()
      {:f, 32}
      iex> Ferrox.add(Ferrox.tensor([1]), Ferrox.tensor([0.5]), promotion: :numpy) |> Ferrox.type()
      {:f, 64}

  There is `:bool` too, which all systems have but Nx's. As in Nx, comparisons
  give a u8 there, and `true` is a 1:

      iex> Ferrox.less(Ferrox.tensor([1, 3]), 2)
      #Ferrox.Tensor<
        u8[2]
        [1, 0]
      >
      iex> Ferrox.less(Ferrox.tensor([1, 3]), 2, promotion: :numpy)
      #Ferrox.Tensor<
        bool[2]
        [true, false]
      >

  ## Numbers

  Numbers, complex numbers, booleans and the atoms `:infinity`, `:neg_infinity`
  and `:nan` are accepted in place of tensors. The tensor's type and the number give
  the type of the result, see `Ferrox.Promotion`; the number itself enters
  the operation as it is. Only floats beside tensors of less than 64 bits are rounded
  to f32 first, as Nx rounds them beside all tensors: `0.1` equals an f32 of `0.1`.

  ## Arithmetic

    * Integers wrap around. Dividing one by zero, raising one to a negative power
      and shifting one by a negative number of bits raise an `ArgumentError`;
      shifting past the width gives 0, or -1 for negative numbers shifted right.
    * Floats follow IEEE 754, and NaN is propagated. Types below 32 bits are
      computed in f32 or f64 and rounded once, to nearest with ties to even.
    * Comparisons are exact for every pair of types.

  """

  import Kernel,
    except: [abs: 1, byte_size: 1, ceil: 1, floor: 1, max: 2, min: 2, round: 1, trunc: 1]

  import Ferrox.Operands, only: [to_tensor: 2]

  alias Ferrox.{Native, Numbers, Observer, Operands, Series, Tensor, Type}

  alias Ferrox.Ops.{
    Compare,
    Create,
    Cumulative,
    Diagonal,
    Dot,
    Einsum,
    Elementwise,
    Index,
    NaN,
    Pad,
    Reduce,
    Rounding,
    Scaled,
    Search,
    Sort,
    Statistics,
    Window
  }

  alias Ferrox.Ops.Shape, as: Shapes

  @typedoc "A number, an infinity or NaN by its name, or a boolean."
  @type number_term :: number | boolean | Ferrox.Complex.t() | Ferrox.Complex.non_finite()
  @typedoc "A tensor, or a number in place of one."
  @type operand :: Tensor.t() | number_term
  @typedoc "The sizes of the axes, `{2, 3}` for two rows of three; `{}` of a scalar."
  @type shape :: tuple
  @typedoc "An axis; negative ones count from the end."
  @type axis :: integer

  ## Creation

  @doc group: "Creation"
  @doc """
  A tensor from a number or from nested lists of numbers.

  The type is inferred as in Nx, s32 for integers and f32 for floats, unless
  given or unless another promotion system is in effect: each has default types
  of its own, and under JAX a scalar without a type is weak. A number that does
  not fit the type raises.

  ## Options

    * `:type` - the type of the tensor
    * `:promotion` - the system that infers the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.tensor([[1, 2, 3], [4, 5, 6]])
      #Ferrox.Tensor<
        s32[2][3]
        [
          [1, 2, 3],
          [4, 5, 6]
        ]
      >

      iex> Ferrox.tensor([1, 2.5, :infinity, :nan], type: :bf16)
      #Ferrox.Tensor<
        bf16[4]
        [1.0, 2.5, Inf, NaN]
      >

      iex> Ferrox.tensor([true, false], type: :bool)
      #Ferrox.Tensor<
        bool[2]
        [true, false]
      >

      iex> Ferrox.tensor(300, type: :u8)
      ** (ArgumentError) tensor: 300 does not fit u8; give a wider :type, or as_type/2 to wrap around

      iex> Ferrox.tensor([[1, 2], [3]])
      ** (ArgumentError) tensor: lists of different lengths: one of length 1 where others have 2

  """
  @spec tensor(operand | [term], keyword) :: Tensor.t()
  def tensor(value, opts \\ []), do: Create.tensor(value, opts)

  @doc group: "Creation"
  @doc """
  A one-dimensional tensor over the bits of a binary, in native byte order, which
  is not copied.

  ## Examples

      iex> Ferrox.from_binary(<<1, 2, 3>>, :u8)
      #Ferrox.Tensor<
        u8[3]
        [1, 2, 3]
      >

      iex> Ferrox.from_binary(<<1, 2, 3>>, :s16)
      ** (ArgumentError) from_binary: 24 bits are no whole number of elements of s16, which take 16 each

  """
  @spec from_binary(bitstring, Type.t() | Type.short_t() | :bool) :: Tensor.t()
  def from_binary(binary, type), do: Create.from_binary(binary, type)

  @doc group: "Creation"
  @doc """
  A tensor that counts from zero, along `:axis` or through all of it.

  ## Options

    * `:type` - the default integer type of the system by default, s32 under Nx's
    * `:axis` - the axis to count along
    * `:promotion` - the system, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.iota({2, 3})
      #Ferrox.Tensor<
        s32[2][3]
        [
          [0, 1, 2],
          [3, 4, 5]
        ]
      >

      iex> Ferrox.iota({2, 2}, axis: 0, type: :f16)
      #Ferrox.Tensor<
        f16[2][2]
        [
          [0.0, 0.0],
          [1.0, 1.0]
        ]
      >

  """
  @spec iota(shape, keyword) :: Tensor.t()
  def iota(shape, opts \\ []), do: Create.iota(shape, opts)

  @doc group: "Creation"
  @doc """
  Ones where the last two indices are equal, zeros elsewhere. A number stands for
  a square matrix.

  ## Options

    * `:type` - s32 by default, under other systems than Nx's the default float
    * `:promotion` - the system, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.eye(2)
      #Ferrox.Tensor<
        s32[2][2]
        [
          [1, 0],
          [0, 1]
        ]
      >

      iex> Ferrox.eye({3})
      ** (ArgumentError) eye expects a shape of at least two axes, got: {3}

  """
  @spec eye(pos_integer | shape, keyword) :: Tensor.t()
  def eye(shape, opts \\ []), do: Create.eye(shape, opts)

  @doc group: "Creation"
  @doc """
  A tensor filled with one number.

  ## Options

    * `:type` - inferred from the number by default
    * `:promotion` - the system that infers it, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.full({2, 2}, 0.5)
      #Ferrox.Tensor<
        f32[2][2]
        [
          [0.5, 0.5],
          [0.5, 0.5]
        ]
      >

  """
  @spec full(shape, operand, keyword) :: Tensor.t()
  def full(shape, number, opts \\ []), do: Create.full(shape, number, opts)

  for {name, example} <- [zeros: [[0, 0, 0], [0, 0, 0]], ones: [[1, 1, 1], [1, 1, 1]]] do
    @doc group: "Creation"
    @doc """
    A tensor of #{name}.

    ## Options

      * `:type` - s32 by default, under other systems than Nx's the default float, as that of `eye/2`
      * `:promotion` - the system, see `Ferrox.Promotion`

    ## Examples

        iex> Ferrox.#{name}({2, 3}) |> Ferrox.to_list()
        #{inspect(example)}
        iex> Ferrox.#{name}({2}, type: :f16).type
        {:f, 16}
        iex> Ferrox.#{name}({2}, promotion: :numpy).type
        {:f, 64}

    """
    @spec unquote(name)(shape, keyword) :: Tensor.t()
    def unquote(name)(shape, opts \\ []), do: Create.unquote(name)(shape, opts)

    like = :"#{name}_like"

    @doc group: "Creation"
    @doc """
    A tensor of #{name} with the shape of another one, and its type.

    ## Options

      * `:type` - that of the tensor by default
      * `:promotion` - the system, see `Ferrox.Promotion`

    ## Examples

        iex> Ferrox.#{like}(Ferrox.tensor([1.5, 2.5])) |> Ferrox.to_list()
        #{inspect(Enum.map(Enum.take(hd(example), 2), &(&1 * 1.0)))}
        iex> Ferrox.#{like}(Ferrox.tensor([1.5, 2.5]), type: :u8) |> Ferrox.to_list()
        #{inspect(Enum.take(hd(example), 2))}

    """
    @spec unquote(like)(operand, keyword) :: Tensor.t()
    def unquote(like)(tensor, opts \\ []), do: Create.unquote(like)(tensor, opts)
  end

  @doc group: "Creation"
  @doc """
  A tensor filled with one number, or a scalar, with the shape of another tensor and its type. A number that
  does not fit the type raises; `fill/3` gives a type that both fit.

  ## Options

    * `:type` - that of the tensor by default
    * `:promotion` - the system, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.full_like(Ferrox.iota({2, 2}), 7) |> Ferrox.to_list()
      [[7, 7], [7, 7]]

      iex> Ferrox.full_like(Ferrox.iota({2}), 0.5)
      ** (ArgumentError) full_like: 0.5 does not fit s32; give a float :type, or as_type/2 to truncate

  """
  @spec full_like(operand, operand, keyword) :: Tensor.t()
  def full_like(tensor, number, opts \\ []), do: Create.full_like(tensor, number, opts)

  @doc group: "Creation"
  @doc """
  The tensor with a value in place of all its elements: a number, or a tensor that broadcasts to its shape.

  ## Options

    * `:type` - by default that of the tensor and the value together
    * `:promotion` - the system that chooses it, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.fill(Ferrox.iota({2, 2}), 5) |> Ferrox.to_list()
      [[5, 5], [5, 5]]
      iex> Ferrox.fill(Ferrox.iota({2, 2}), 0.5).type
      {:f, 32}
      iex> Ferrox.fill(Ferrox.iota({2, 2}), 5, type: :u8).type
      {:u, 8}

  """
  @spec fill(operand, operand, keyword) :: Tensor.t()
  def fill(tensor, value, opts \\ []), do: Create.fill(tensor, value, opts)

  @doc group: "Creation"
  @doc """
  Numbers at equal distances from `start` to `stop`, along a new last axis if these are tensors, which
  have the same shape then. The numbers are computed in 64 bits and rounded once.

  ## Options

    * `:n` - how many there are, required
    * `:endpoint` - whether `stop` is the last of them; `true` by default
    * `:type` - by default that of a quotient of both, f32 for integers and floats
    * `:promotion` - the system that chooses it, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.linspace(0, 1, n: 5) |> Ferrox.to_list()
      [0.0, 0.25, 0.5, 0.75, 1.0]
      iex> Ferrox.linspace(0, 1, n: 4, endpoint: false) |> Ferrox.to_list()
      [0.0, 0.25, 0.5, 0.75]
      iex> Ferrox.linspace(Ferrox.tensor([0, 10]), Ferrox.tensor([1, 30]), n: 3) |> Ferrox.to_list()
      [[0.0, 0.5, 1.0], [10.0, 20.0, 30.0]]

      iex> Ferrox.linspace(0, 1, n: 0)
      ** (ArgumentError) linspace: :n must be a positive integer, got: 0

  """
  @spec linspace(operand, operand, keyword) :: Tensor.t()
  def linspace(start, stop, opts \\ []), do: Create.linspace(start, stop, opts)

  @doc group: "Creation"
  @doc """
  Powers of a base with exponents at equal distances from `start` to `stop`, as those of `linspace/3`. They are
  computed in 64 bits and rounded once.

  ## Options

    * `:n` - how many there are, required
    * `:base` - 10 by default
    * `:endpoint` - whether the power of `stop` is the last of them; `true` by default
    * `:type` - by default that of a quotient of both, f32 for integers and floats
    * `:promotion` - the system that chooses it, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.logspace(0, 3, n: 4) |> Ferrox.to_list()
      [1.0, 10.0, 100.0, 1000.0]
      iex> Ferrox.logspace(-1, 1, n: 3, base: 2) |> Ferrox.to_list()
      [0.5, 1.0, 2.0]

  """
  @spec logspace(operand, operand, keyword) :: Tensor.t()
  def logspace(start, stop, opts \\ []), do: Create.logspace(start, stop, opts)

  @doc group: "Creation"
  @doc """
  The integers from zero to before `stop`; see `arange/3`.

  ## Examples

      iex> Ferrox.arange(4) |> Ferrox.to_list()
      [0, 1, 2, 3]

  """
  @spec arange(number) :: Tensor.t()
  def arange(stop), do: Create.arange(0, stop, [])

  @doc group: "Creation"
  @doc """
  The numbers from `start` to before `stop`, as NumPy's `arange`. The i-th is `start + i * step`,
  computed in 64 bits. Where the steps are no integers, the count depends on how they are rounded;
  `linspace/3` is given the count.

  ## Options

    * `:step` - 1 by default; numbers go down if it is negative
    * `:type` - inferred from the numbers by default, as in `tensor/2`
    * `:promotion` - the system that infers it, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.arange(2, 10, step: 3) |> Ferrox.to_list()
      [2, 5, 8]
      iex> Ferrox.arange(1, 0, step: -0.25) |> Ferrox.to_list()
      [1.0, 0.75, 0.5, 0.25]

      iex> Ferrox.arange(3, 3)
      ** (ArgumentError) arange: no number lies from 3 to before 3 in steps of 1, and a tensor has at least one element

  """
  @spec arange(number, number, keyword) :: Tensor.t()
  def arange(start, stop, opts \\ []), do: Create.arange(start, stop, opts)

  @doc group: "Creation"
  @doc """
  A matrix with 1 at and below a diagonal, 0 above it: u8, under other systems than Nx's bool.

  ## Options

    * `:k` - the diagonal; 0 by default, positive ones are above it
    * `:promotion` - the system, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.tri(2, 3) |> Ferrox.to_list()
      [[1, 0, 0], [1, 1, 0]]
      iex> Ferrox.tri(2, 3, k: 1) |> Ferrox.to_list()
      [[1, 1, 0], [1, 1, 1]]

  """
  @spec tri(pos_integer, pos_integer, keyword) :: Tensor.t()
  def tri(rows, columns, opts \\ []), do: Diagonal.tri(rows, columns, opts)

  for {name, text, side, example} <- [
        {:tril, "lower", "above", [[1, 0, 0], [4, 5, 0], [7, 8, 9]]},
        {:triu, "upper", "below", [[1, 2, 3], [0, 5, 6], [0, 0, 9]]}
      ] do
    @doc group: "Shapes"
    @doc """
    The #{text} triangle of matrices, the last two axes, with zeros #{side} a diagonal. The type stays.

    ## Options

      * `:k` - the diagonal; 0 by default, positive ones are above it

    ## Examples

        iex> Ferrox.#{name}(Ferrox.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]])) |> Ferrox.to_list()
        #{inspect(example, charlists: :as_lists)}

    """
    @spec unquote(name)(operand, keyword) :: Tensor.t()
    def unquote(name)(tensor, opts \\ []), do: Diagonal.triangle(unquote(name), tensor, opts)
  end

  @doc group: "Shapes"
  @doc """
  The diagonal of matrices, the last two axes.

  ## Options

    * `:offset` - the diagonal; 0 by default, positive ones are above it

  ## Examples

      iex> Ferrox.take_diagonal(Ferrox.iota({3, 3})) |> Ferrox.to_list()
      [0, 4, 8]
      iex> Ferrox.take_diagonal(Ferrox.iota({3, 3}), offset: -1) |> Ferrox.to_list()
      [3, 7]

      iex> Ferrox.take_diagonal(Ferrox.iota({2, 3}), offset: 3)
      ** (ArgumentError) take_diagonal: :offset must be from -1 to 2 for matrices of shape {2, 3}, got: 3

  """
  @spec take_diagonal(operand, keyword) :: Tensor.t()
  def take_diagonal(tensor, opts \\ []), do: Diagonal.take(tensor, opts)

  @doc group: "Creation"
  @doc """
  A square matrix with the elements of a vector on a diagonal, zeros elsewhere.

  ## Options

    * `:offset` - the diagonal; 0 by default, positive ones are above it

  ## Examples

      iex> Ferrox.make_diagonal(Ferrox.tensor([1, 2])) |> Ferrox.to_list()
      [[1, 0], [0, 2]]
      iex> Ferrox.make_diagonal(Ferrox.tensor([1, 2]), offset: 1) |> Ferrox.to_list()
      [[0, 1, 0], [0, 0, 2], [0, 0, 0]]

  """
  @spec make_diagonal(operand, keyword) :: Tensor.t()
  def make_diagonal(tensor, opts \\ []), do: Diagonal.make(tensor, opts)

  @doc group: "Indices"
  @doc """
  A matrix with the elements of a vector on a diagonal, in place of its own.

  ## Options

    * `:offset` - the diagonal; 0 by default, positive ones are above it
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.put_diagonal(Ferrox.iota({2, 3}), Ferrox.tensor([8, 9])) |> Ferrox.to_list()
      [[8, 1, 2], [3, 9, 5]]

  """
  @spec put_diagonal(operand, operand, keyword) :: Tensor.t()
  def put_diagonal(tensor, diagonal, opts \\ []), do: Diagonal.put(tensor, diagonal, opts)

  ## Reading

  @doc group: "Reading"
  @doc """
  The data in native byte order, without a copy.

  ## Examples

      iex> Ferrox.to_binary(Ferrox.tensor([1, 2], type: :u8))
      <<1, 2>>

  """
  @spec to_binary(Tensor.t()) :: bitstring
  def to_binary(%Tensor{data: data}), do: data
  def to_binary(other), do: not_a_tensor!(other, :to_binary)

  @doc group: "Reading"
  @doc """
  The elements in a flat list, as integers, floats (`:nan`, `:infinity` and
  `:neg_infinity` for what floats can't be), complex numbers or booleans.

  ## Examples

      iex> Ferrox.to_flat_list(Ferrox.tensor([[1, 2], [3, 4]]))
      [1, 2, 3, 4]
      iex> Ferrox.to_flat_list(Ferrox.divide(Ferrox.tensor([1.0, 0.0, -1.0]), 0))
      [:infinity, :nan, :neg_infinity]

  """
  @spec to_flat_list(Tensor.t()) :: [number_term]
  def to_flat_list(%Tensor{data: data, type: type, shape: shape}),
    do: Numbers.decode(data, type, Native.size(shape))

  def to_flat_list(other), do: not_a_tensor!(other, :to_flat_list)

  @doc group: "Reading"
  @doc """
  The elements in lists nested as the shape says.

  ## Examples

      iex> Ferrox.to_list(Ferrox.iota({2, 1, 3}))
      [[[0, 1, 2]], [[3, 4, 5]]]

      iex> Ferrox.to_list(Ferrox.tensor(1))
      ** (ArgumentError) to_list expects a tensor with axes, got a scalar; use to_number/1

  """
  @spec to_list(Tensor.t()) :: list
  def to_list(%Tensor{shape: {}}),
    do: raise(ArgumentError, "to_list expects a tensor with axes, got a scalar; use to_number/1")

  def to_list(%Tensor{shape: shape} = tensor) do
    [_ | inner] = Tuple.to_list(shape)
    inner |> Enum.reverse() |> Enum.reduce(to_flat_list(tensor), &Enum.chunk_every(&2, &1))
  end

  def to_list(other), do: not_a_tensor!(other, :to_list)

  @doc group: "Reading"
  @doc """
  The number that a scalar holds.

  ## Examples

      iex> Ferrox.to_number(Ferrox.tensor(5))
      5

      iex> Ferrox.to_number(Ferrox.tensor([5]))
      ** (ArgumentError) to_number expects a scalar, got a tensor of shape {1}

  """
  @spec to_number(Tensor.t()) :: number_term
  def to_number(%Tensor{shape: {}} = tensor), do: tensor |> to_flat_list() |> hd()

  def to_number(%Tensor{shape: shape}) do
    raise ArgumentError, "to_number expects a scalar, got a tensor of shape #{inspect(shape)}"
  end

  def to_number(other), do: not_a_tensor!(other, :to_number)

  @spec not_a_tensor!(term, atom) :: no_return
  defp not_a_tensor!(other, op) do
    raise ArgumentError, "#{op} expects a Ferrox.Tensor, got: #{inspect(other)}"
  end

  @doc group: "Reading"
  @doc """
  The shape.

  ## Examples

      iex> Ferrox.shape(Ferrox.tensor([[1, 2, 3]]))
      {1, 3}
      iex> Ferrox.shape(1)
      {}

  """
  @spec shape(operand) :: shape
  def shape(tensor), do: to_tensor(tensor, :shape).shape

  @doc group: "Reading"
  @doc """
  The type.

  ## Examples

      iex> Ferrox.type(Ferrox.tensor([1.0]))
      {:f, 32}
      iex> Ferrox.type(1, promotion: :jax)
      {:s, 64}

  """
  @spec type(operand, keyword) :: Type.t() | :bool
  def type(tensor, opts \\ [])
  def type(%Tensor{type: type}, []), do: type
  def type(tensor, opts), do: Operands.tensor!(tensor, Operands.mode!(opts, :type), :type).type

  @doc group: "Reading"
  @doc """
  The number of elements.

  ## Examples

      iex> Ferrox.size(Ferrox.iota({2, 3}))
      6

  """
  @spec size(operand) :: pos_integer
  def size(tensor), do: tensor |> shape() |> Native.size()

  @doc group: "Reading"
  @doc """
  The number of axes.

  ## Examples

      iex> Ferrox.rank(Ferrox.iota({2, 3}))
      2

  """
  @spec rank(operand) :: non_neg_integer
  def rank(tensor), do: tensor |> shape() |> tuple_size()

  @doc group: "Reading"
  @doc """
  The axes in a list.

  ## Examples

      iex> Ferrox.axes(Ferrox.iota({2, 3}))
      [0, 1]

  """
  @spec axes(operand) :: [non_neg_integer]
  def axes(tensor), do: tensor |> shape() |> Ferrox.Shape.all_axes()

  @doc group: "Reading"
  @doc """
  The size of an axis.

  ## Examples

      iex> Ferrox.axis_size(Ferrox.iota({2, 3}), -1)
      3

      iex> Ferrox.axis_size(Ferrox.iota({2, 3}), 2)
      ** (ArgumentError) axis_size: axis 2 is out of range for shape {2, 3}: its axes are -2 to 1

  """
  @spec axis_size(operand, axis) :: pos_integer
  def axis_size(tensor, axis), do: Shapes.axis_size(tensor, axis)

  @doc group: "Reading"
  @doc """
  The number of bytes of the data, rounded up for types of 2 and 4 bits.

  ## Examples

      iex> Ferrox.byte_size(Ferrox.iota({2, 3}, type: :f64))
      48

  """
  @spec byte_size(operand) :: pos_integer
  def byte_size(tensor), do: Kernel.byte_size(to_tensor(tensor, :byte_size).data)

  ## Files

  @doc group: "Files"
  @doc """
  Reads a tensor from a `.npy` file; see `Ferrox.Npy`.

  ## Options

    * `:promotion` - the system, see `Ferrox.Promotion`: booleans are u8 under Nx's,
      bool under others

  ## Examples

      iex> path = Path.join(System.tmp_dir!(), "ferrox_load_npy.npy")
      iex> Ferrox.save_npy!(Ferrox.iota({2, 2}), path)
      iex> Ferrox.to_list(Ferrox.load_npy!(path))
      [[0, 1], [2, 3]]

  """
  @spec load_npy!(Path.t(), keyword) :: Tensor.t()
  def load_npy!(path, opts \\ []), do: path |> File.read!() |> Ferrox.Npy.decode!(opts)

  @doc group: "Files"
  @doc """
  Writes a tensor to a `.npy` file; see `Ferrox.Npy`.

  ## Examples

      iex> path = Path.join(System.tmp_dir!(), "ferrox_save_npy.npy")
      iex> Ferrox.save_npy!(Ferrox.tensor([1.5]), path)
      :ok

  """
  @spec save_npy!(Tensor.t(), Path.t()) :: :ok
  def save_npy!(%Tensor{} = tensor, path), do: File.write!(path, Ferrox.Npy.encode!(tensor))
  def save_npy!(other, _path), do: not_a_tensor!(other, :save_npy!)

  @doc group: "Files"
  @doc """
  Reads the tensors of a `.npz` file, by their names; see `Ferrox.Npz`.

  ## Options

    * `:promotion` - the system, as in `load_npy!/2`

  ## Examples

      iex> path = Path.join(System.tmp_dir!(), "ferrox_load_npz.npz")
      iex> Ferrox.save_npz!(%{"x" => Ferrox.tensor([1, 2])}, path)
      iex> Ferrox.to_list(Ferrox.load_npz!(path)["x"])
      [1, 2]

  """
  @spec load_npz!(Path.t(), keyword) :: %{String.t() => Tensor.t()}
  def load_npz!(path, opts \\ []), do: path |> File.read!() |> Ferrox.Npz.decode!(opts)

  @doc group: "Files"
  @doc """
  Writes tensors, given as a map or a keyword list, to a `.npz` file; see `Ferrox.Npz`.

  ## Options

    * `:compressed` - `false` by default

  ## Examples

      iex> path = Path.join(System.tmp_dir!(), "ferrox_save_npz.npz")
      iex> Ferrox.save_npz!([x: Ferrox.tensor([1.5])], path, compressed: true)
      :ok

  """
  @spec save_npz!(Enumerable.t(), Path.t(), keyword) :: :ok
  def save_npz!(tensors, path, opts \\ []),
    do: File.write!(path, Ferrox.Npz.encode!(tensors, opts))

  @doc group: "Files"
  @doc """
  Reads a matrix from a file of text, with a row on each line; see `Ferrox.Csv`, which has the options in
  `Ferrox.Csv.decode!/2`.

  ## Examples

      iex> path = Path.join(System.tmp_dir!(), "ferrox_load_csv.csv")
      iex> File.write!(path, "x,y\\n1,2\\n3,4\\n")
      iex> Ferrox.load_csv!(path, skip_lines: 1) |> Ferrox.to_list()
      [[1, 2], [3, 4]]

  """
  @spec load_csv!(Path.t(), keyword) :: Tensor.t()
  def load_csv!(path, opts \\ []), do: path |> File.read!() |> Ferrox.Csv.decode!(opts)

  @doc group: "Files"
  @doc """
  Writes a vector or a matrix to a file of text; see `Ferrox.Csv`, which has the options in
  `Ferrox.Csv.encode!/2`.

  ## Examples

      iex> path = Path.join(System.tmp_dir!(), "ferrox_save_csv.csv")
      iex> Ferrox.save_csv!(Ferrox.tensor([[1, 2], [3, 4]]), path, header: ["x", "y"])
      iex> File.read!(path)
      "x,y\\n1,2\\n3,4\\n"

  """
  @spec save_csv!(Tensor.t(), Path.t(), keyword) :: :ok
  def save_csv!(tensor, path, opts \\ []), do: File.write!(path, Ferrox.Csv.encode!(tensor, opts))

  ## Observing

  @doc group: "Observing"
  @doc """
  Says what is observed of the calls of the native library, in all processes, whether they come from
  this module, from Nx or from compiled programs.

    * `:off` - nothing, the default
    * `:stats` - calls are counted, see `stats/0`
    * `:events` - calls are counted, and each emits the event `[:ferrox, :operation, :stop]` of
      [telemetry](https://hexdocs.pm/telemetry), whose application must be there

  The event's measurements are `:duration`, in native time units, and `:bytes`, the size of the
  result. Its metadata are:

    * `:family` - the family of the operation, as in `stats/0`
    * `:operation` - the operation, or `:program` for a compiled one
    * `:types` and `:shapes` - those of the operands that are tensors, as the library is given them (a
      vector in a product may be a matrix), or of the parameters of a program
    * `:scheduler` - the kind of scheduler of the VM that has done the work, `:normal` or `:dirty`;
      `nil` for programs, which may go from the first to the second
    * `:threads` - the most threads that share the work of an operation
    * `:function` - the function that a program was compiled from; otherwise `nil`

  Operations that the library isn't called for, such as `reshape/2`, are not observed, and neither are
  those that raise. A program that calls functions of Elixir counts once more after each.

  ## Examples

      iex> Ferrox.observe(:stats)
      iex> Ferrox.observe(:off)
      :ok

      iex> Ferrox.observe(:everything)
      ** (ArgumentError) expected one of: :off, :stats, :events, got: :everything

  """
  @spec observe(:off | :stats | :events) :: :ok
  defdelegate observe(what), to: Observer

  @doc group: "Observing"
  @doc """
  What has been counted since `observe/1` was first asked for it, or since `reset_stats/0`.

  `:threads` is the most threads that share the work of an operation. `:scratch_bytes` is the most memory that
  the library has had at one time, in all processes together and beside operands and results: intermediate
  results, constants of compiled programs, and what threads keep for the next call, in blocks of at least
  64 KB. `:families` has the families of
  operations that have been called, with `:calls`, how many of these ran on a dirty scheduler
  (`:dirty_calls`), their `:time` in nanoseconds and the `:bytes` of their results.

  ## Examples

      iex> Ferrox.observe(:stats)
      iex> Ferrox.reset_stats()
      iex> Ferrox.add(Ferrox.tensor([1, 2]), Ferrox.tensor([3, 4]))
      iex> %{families: %{binary: binary}} = Ferrox.stats()
      iex> {binary.calls, binary.dirty_calls, binary.bytes}
      {1, 0, 8}
      iex> Ferrox.observe(:off)
      :ok

  """
  @spec stats() :: %{
          threads: pos_integer,
          scratch_bytes: non_neg_integer,
          families: %{
            atom => %{
              calls: pos_integer,
              dirty_calls: non_neg_integer,
              time: non_neg_integer,
              bytes: non_neg_integer
            }
          }
        }
  defdelegate stats(), to: Observer

  @doc group: "Observing"
  @doc """
  Counts from zero again, and scratch memory from what is in use.

  ## Examples

      iex> Ferrox.reset_stats()
      :ok
      iex> Ferrox.stats().families
      %{}

  """
  @spec reset_stats() :: :ok
  defdelegate reset_stats(), to: Observer, as: :reset

  ## Elementwise, two operands

  binary_ops = [
    add: {"The sum.", "Ferrox.add(Ferrox.tensor([1, 2]), 10)", [11, 12]},
    subtract: {"The difference.", "Ferrox.subtract(Ferrox.tensor([1, 2]), 10)", [-9, -8]},
    multiply: {"The product.", "Ferrox.multiply(Ferrox.tensor([1, 2]), 1.5)", [1.5, 3.0]},
    pow:
      {"""
       The power. A negative exponent of an integer raises.
       """, "Ferrox.pow(Ferrox.tensor([2, 3]), 3)", [8, 27]},
    remainder:
      {"""
       The remainder of a division that rounds towards zero; it has the sign of the
       left operand. Zero as the right operand raises for integers and gives NaN for
       floats.
       """, "Ferrox.remainder(Ferrox.tensor([7, -7]), 3)", [1, -1]},
    quotient:
      {"""
       The quotient of integers, rounded towards zero. Zero as the right operand
       raises.
       """, "Ferrox.quotient(Ferrox.tensor([7, -7]), 2)", [3, -3]},
    min: {"The smaller one; NaN if either is.", "Ferrox.min(Ferrox.tensor([1, 5]), 3)", [1, 3]},
    max: {"The larger one; NaN if either is.", "Ferrox.max(Ferrox.tensor([1, 5]), 3)", [3, 5]},
    bitwise_and:
      {"The bits that both integers have.", "Ferrox.bitwise_and(Ferrox.tensor([5, 6]), 3)",
       [1, 2]},
    bitwise_or:
      {"The bits that either integer has.", "Ferrox.bitwise_or(Ferrox.tensor([5, 6]), 3)", [7, 7]},
    bitwise_xor:
      {"The bits that one of two integers has.", "Ferrox.bitwise_xor(Ferrox.tensor([5, 6]), 3)",
       [6, 5]},
    left_shift:
      {"""
       The left integer shifted left by as many bits as the right one says. A
       negative one raises; past the width the result is 0.
       """, "Ferrox.left_shift(Ferrox.tensor([1, 3]), 2)", [4, 12]},
    right_shift:
      {"""
       The left integer shifted right by as many bits as the right one says, keeping
       its sign. A negative one raises; past the width only the sign is left.
       """, "Ferrox.right_shift(Ferrox.tensor([4, -4]), 1)", [2, -2]}
  ]

  floating_ops = [
    divide: {"The quotient, a float.", "Ferrox.divide(Ferrox.tensor([1, 2]), 4)", [0.25, 0.5]},
    atan2:
      {"""
       The angle of the point whose ordinate is the left and whose abscissa the right
       operand, in radians from -pi to pi.
       """, "Ferrox.atan2(Ferrox.tensor([0.0, -0.0]), 1.0)", [0.0, -0.0]}
  ]

  predicates = [
    equal: {"1 where both are equal, else 0.", "Ferrox.equal(Ferrox.tensor([1, 2]), 2)", [0, 1]},
    not_equal:
      {"1 where the operands differ, else 0.", "Ferrox.not_equal(Ferrox.tensor([1, 2]), 2)",
       [1, 0]},
    greater:
      {"1 where the left one is greater, else 0.", "Ferrox.greater(Ferrox.tensor([1, 3]), 2)",
       [0, 1]},
    less:
      {"1 where the left one is less, else 0.", "Ferrox.less(Ferrox.tensor([1, 3]), 2)", [1, 0]},
    greater_equal:
      {"1 where the left one is greater or equal, else 0.",
       "Ferrox.greater_equal(Ferrox.tensor([1, 2]), 2)", [0, 1]},
    less_equal:
      {"1 where the left one is less or equal, else 0.",
       "Ferrox.less_equal(Ferrox.tensor([2, 3]), 2)", [1, 0]},
    logical_and:
      {"1 where neither is zero, else 0.", "Ferrox.logical_and(Ferrox.tensor([0, 2]), 3)", [0, 1]},
    logical_or:
      {"1 where not both are zero, else 0.", "Ferrox.logical_or(Ferrox.tensor([0, 2]), 0)",
       [0, 1]},
    logical_xor:
      {"1 where one of both is zero, else 0.", "Ferrox.logical_xor(Ferrox.tensor([0, 2]), 3)",
       [1, 0]}
  ]

  example = fn code, result ->
    "\n\n## Examples\n\n    iex> #{code} |> Ferrox.to_list()\n    #{inspect(result, charlists: :as_lists)}\n"
  end

  option = """

  The operands are broadcast together.

  ## Options

    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`
  """

  for {name, {text, code, result}} <- binary_ops ++ floating_ops do
    @doc group: "Elementwise, two operands"
    @doc String.trim(text) <> "\n" <> option <> example.(code, result)
    @spec unquote(name)(operand, operand, keyword) :: Tensor.t()
    def unquote(name)(left, right, opts \\ []),
      do: Elementwise.binary(unquote(name), left, right, opts)
  end

  for {name, text, example} <- [
        {:floor_divide, "The quotient, rounded down.", [2, -3]},
        {:mod,
         "The remainder of a division that rounds down, as of `floor_divide/3`; it has the sign of the right operand.",
         [1, 2]}
      ] do
    @doc group: "Elementwise, two operands"
    @doc """
    #{text} `quotient/3` and `remainder/3` round towards zero.

    Zero as the right operand raises for integers; floats give what NumPy does.
    #{option}
    ## Examples

        iex> Ferrox.#{name}(Ferrox.tensor([7, -7]), 3) |> Ferrox.to_list()
        #{inspect(example, charlists: :as_lists)}

    """
    @spec unquote(name)(operand, operand, keyword) :: Tensor.t()
    def unquote(name)(left, right, opts \\ []),
      do: Elementwise.unquote(name)(left, right, opts)
  end

  for {name, text, example} <- [
        {:hypot, "The length of the hypotenuse over two sides, `sqrt(left ** 2 + right ** 2)`",
         {"[3, 6]", "[4, 8]", [5.0, 10.0]}},
        {:logaddexp, "The logarithm of a sum of exponentials, `log(exp(left) + exp(right))`",
         {"[0, -1000]", "[0, :neg_infinity]", [0.6931471824645996, -1000.0]}}
      ] do
    {left, right, result} = example

    @doc group: "Elementwise, two operands"
    @doc """
    #{text}, which doesn't overflow or underflow where the result doesn't. A float, computed in 64 bits and
    rounded once.
    #{option}
    ## Examples

        iex> Ferrox.#{name}(Ferrox.tensor(#{left}), Ferrox.tensor(#{right})) |> Ferrox.to_list()
        #{inspect(result)}

    """
    @spec unquote(name)(operand, operand, keyword) :: Tensor.t()
    def unquote(name)(left, right, opts \\ []), do: Scaled.unquote(name)(left, right, opts)
  end

  for {name, op, what, example} <- [
        {:fmax, :max, "larger", [1.0, 5.0, :nan]},
        {:fmin, :min, "smaller", [1.0, 3.0, :nan]}
      ] do
    @doc group: "Elementwise, two operands"
    @doc """
    The #{what} one, and of NaN and a number the number, other than `#{op}/3`. NaN if both are.
    #{option}
    ## Examples

        iex> Ferrox.#{name}(Ferrox.tensor([1, 5, :nan]), Ferrox.tensor([:nan, 3, :nan])) |> Ferrox.to_list()
        #{inspect(example)}

    """
    @spec unquote(name)(operand, operand, keyword) :: Tensor.t()
    def unquote(name)(left, right, opts \\ []),
      do: NaN.extreme(unquote(name), unquote(op), left, right, opts)
  end

  for {name, {text, code, result}} <- predicates do
    @doc group: "Elementwise, two operands"
    @doc String.trim(text) <>
           "\n\nThe result is a u8, under other systems than Nx's a bool." <>
           option <> example.(code, result)
    @spec unquote(name)(operand, operand, keyword) :: Tensor.t()
    def unquote(name)(left, right, opts \\ []),
      do: Elementwise.binary(unquote(name), left, right, opts)
  end

  ## Elementwise, one operand

  same_type_ops = [
    negate: {"The number with the other sign.", "Ferrox.negate(Ferrox.tensor([1, -2]))", [-1, 2]},
    sign:
      {"-1 for negative, 1 for positive numbers; zeros and NaN stay what they are.",
       "Ferrox.sign(Ferrox.tensor([-5, 0, 5]))", [-1, 0, 1]},
    floor:
      {"The greatest integer that is not greater.", "Ferrox.floor(Ferrox.tensor([1.5, -1.5]))",
       [1.0, -2.0]},
    ceil:
      {"The least integer that is not less.", "Ferrox.ceil(Ferrox.tensor([1.5, -1.5]))",
       [2.0, -1.0]},
    bitwise_not:
      {"The integer with every bit inverted.", "Ferrox.bitwise_not(Ferrox.tensor([0, 5]))",
       [-1, -6]},
    population_count:
      {"How many bits of the integer are set.",
       "Ferrox.population_count(Ferrox.tensor([0, 7, -1]))", [0, 3, 32]},
    count_leading_zeros:
      {"How many bits of the integer are zero before the first that is set.",
       "Ferrox.count_leading_zeros(Ferrox.tensor([0, 7, -1]))", [32, 29, 0]}
  ]

  floating_unary_ops = [
    exp: {"The exponential.", "Ferrox.exp(Ferrox.tensor([0, 1]))", [1.0, 2.7182817459106445]},
    expm1: {"The exponential minus one.", "Ferrox.expm1(Ferrox.tensor([0.0]))", [0.0]},
    log: {"The natural logarithm.", "Ferrox.log(Ferrox.tensor([1, 0]))", [0.0, :neg_infinity]},
    log1p:
      {"The natural logarithm of one plus the number.", "Ferrox.log1p(Ferrox.tensor([0.0]))",
       [0.0]},
    sqrt: {"The square root.", "Ferrox.sqrt(Ferrox.tensor([4, -1]))", [2.0, :nan]},
    rsqrt: {"One over the square root.", "Ferrox.rsqrt(Ferrox.tensor([4, 16]))", [0.5, 0.25]},
    sin: {"The sine of an angle in radians.", "Ferrox.sin(Ferrox.tensor([0.0]))", [0.0]},
    cos: {"The cosine of an angle in radians.", "Ferrox.cos(Ferrox.tensor([0.0]))", [1.0]},
    tan: {"The tangent of an angle in radians.", "Ferrox.tan(Ferrox.tensor([0.0]))", [0.0]},
    tanh: {"The hyperbolic tangent.", "Ferrox.tanh(Ferrox.tensor([0.0]))", [0.0]},
    sigmoid: {"`1 / (1 + exp(-x))`", "Ferrox.sigmoid(Ferrox.tensor([0.0]))", [0.5]},
    cbrt: {"The cube root.", "Ferrox.cbrt(Ferrox.tensor([8, -1]))", [2.0, -1.0]},
    asin: {"The inverse sine.", "Ferrox.asin(Ferrox.tensor([0, 2]))", [0.0, :nan]},
    acos: {"The inverse cosine.", "Ferrox.acos(Ferrox.tensor([1, 2]))", [0.0, :nan]},
    atan:
      {"The inverse tangent.", "Ferrox.atan(Ferrox.tensor([0, :infinity]))",
       [0.0, 1.5707963705062866]},
    sinh: {"The hyperbolic sine.", "Ferrox.sinh(Ferrox.tensor([0.0]))", [0.0]},
    cosh: {"The hyperbolic cosine.", "Ferrox.cosh(Ferrox.tensor([0.0]))", [1.0]},
    asinh: {"The inverse hyperbolic sine.", "Ferrox.asinh(Ferrox.tensor([0.0]))", [0.0]},
    acosh: {"The inverse hyperbolic cosine.", "Ferrox.acosh(Ferrox.tensor([1, 0]))", [0.0, :nan]},
    atanh:
      {"The inverse hyperbolic tangent.", "Ferrox.atanh(Ferrox.tensor([0, 1]))", [0.0, :infinity]},
    erf: {"The error function.", "Ferrox.erf(Ferrox.tensor([0, 1]))", [0.0, 0.8427007794380188]},
    erfc:
      {"One minus the error function, accurate where that is small.",
       "Ferrox.erfc(Ferrox.tensor([0, 3]))", [1.0, 2.2090496713644825e-5]},
    erf_inv:
      {"The inverse error function, by the same approximation as Nx's, good to about 6 digits.",
       "Ferrox.erf_inv(Ferrox.tensor([0.0, 0.5, 1.0]))", [0.0, 0.4769362807273865, :infinity]}
  ]

  unary_predicates = [
    is_nan:
      {"1 where the number is NaN, else 0.", "Ferrox.is_nan(Ferrox.tensor([:nan, 1.0]))", [1, 0]},
    is_infinity:
      {"1 where the number is infinite, else 0.",
       "Ferrox.is_infinity(Ferrox.tensor([:infinity, 1.0]))", [1, 0]},
    logical_not:
      {"1 where the number is zero, else 0.", "Ferrox.logical_not(Ferrox.tensor([0, 2]))", [1, 0]}
  ]

  promotion = """

  ## Options

    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`
  """

  for {ops, note} <- [
        {same_type_ops, ""},
        {floating_unary_ops,
         "\n\nThe result is a float, f32 for integers or what the system says."},
        {unary_predicates, "\n\nThe result is a u8, under other systems than Nx's a bool."}
      ],
      {name, {text, code, result}} <- ops do
    @doc group: "Elementwise, one operand"
    @doc text <> note <> "\n" <> promotion <> example.(code, result)
    @spec unquote(name)(operand, keyword) :: Tensor.t()
    def unquote(name)(tensor, opts \\ []), do: Elementwise.unary(unquote(name), tensor, opts)
  end

  @doc group: "Elementwise, one operand"
  @doc """
  The nearest integer, or the nearest number with some decimals. Halves are rounded away from zero, as by
  `Nx.round/1`, or to the even neighbour, as by NumPy's `round` and `rint`.

  Integers stay what they are, but for negative numbers of decimals, and wrap around there. Of floats with
  decimals, the products with a power of ten are rounded, in 64 bits; what is so large that it has no such
  decimals stays.

  ## Options

    * `:decimals` - how many there are after the point; 0 by default. Negative ones are before it: -2 rounds to
      hundreds
    * `:ties` - `:away` by default, or `:even`, for what is half way between two numbers
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.round(Ferrox.tensor([0.5, 1.5, -2.5])) |> Ferrox.to_list()
      [1.0, 2.0, -3.0]
      iex> Ferrox.round(Ferrox.tensor([0.5, 1.5, -2.5]), ties: :even) |> Ferrox.to_list()
      [0.0, 2.0, -2.0]
      iex> Ferrox.round(Ferrox.tensor([3.14159, 2.71828], type: :f64), decimals: 2) |> Ferrox.to_list()
      [3.14, 2.72]
      iex> Ferrox.round(Ferrox.tensor([1250, 1249]), decimals: -2) |> Ferrox.to_list()
      [1300, 1200]

  """
  @spec round(operand, keyword) :: Tensor.t()
  def round(tensor, opts \\ []), do: Rounding.round(tensor, opts)

  @doc group: "Elementwise, one operand"
  @doc """
  The integer that is nearest towards zero. Integers stay what they are.
  #{promotion}
  ## Examples

      iex> Ferrox.trunc(Ferrox.tensor([1.7, -1.7])) |> Ferrox.to_list()
      [1.0, -1.0]

  """
  @spec trunc(operand, keyword) :: Tensor.t()
  def trunc(tensor, opts \\ []), do: Rounding.trunc(tensor, opts)

  @doc group: "Elementwise, one operand"
  @doc """
  The product of the number with itself. Integers wrap around.
  #{promotion}
  ## Examples

      iex> Ferrox.square(Ferrox.tensor([-3, 4])) |> Ferrox.to_list()
      [9, 16]

  """
  @spec square(operand, keyword) :: Tensor.t()
  def square(tensor, opts \\ []), do: Elementwise.square(tensor, opts)

  @doc group: "Elementwise, one operand"
  @doc """
  One over the number, a float. NumPy's of integers is an integer, and zero but for 1 and -1.
  #{promotion}
  ## Examples

      iex> Ferrox.reciprocal(Ferrox.tensor([2, -4, 0])) |> Ferrox.to_list()
      [0.5, -0.25, :infinity]

  """
  @spec reciprocal(operand, keyword) :: Tensor.t()
  def reciprocal(tensor, opts \\ []), do: Elementwise.reciprocal(tensor, opts)

  for {name, from, code, result} <- [
        {:degrees, "radians", "[0.0, 3.141592653589793]", [0.0, 180.0]},
        {:radians, "degrees", "[0, 180]", [0.0, 3.1415927410125732]}
      ] do
    @doc group: "Elementwise, one operand"
    @doc """
    An angle that is given in #{from}, in #{name}: a float, computed in 64 bits and rounded once.
    #{promotion}
    ## Examples

        iex> Ferrox.#{name}(Ferrox.tensor(#{code})) |> Ferrox.to_list()
        #{inspect(result)}

    """
    @spec unquote(name)(operand, keyword) :: Tensor.t()
    def unquote(name)(tensor, opts \\ []), do: Elementwise.angle(unquote(name), tensor, opts)
  end

  for {name, base} <- [log2: 2, log10: 10] do
    @doc group: "Elementwise, one operand"
    @doc """
    The logarithm to base #{base}, computed in 64 bits and rounded once; a whole number for powers of
    #{base}.

    The result is a float, f32 for integers or what the system says.
    #{promotion}
    ## Examples

        iex> Ferrox.#{name}(Ferrox.tensor([1, #{base ** 3}])) |> Ferrox.to_list()
        [0.0, 3.0]

    """
    @spec unquote(name)(operand, keyword) :: Tensor.t()
    def unquote(name)(tensor, opts \\ []), do: Elementwise.logarithm(unquote(name), tensor, opts)
  end

  @doc group: "Elementwise, one operand"
  @doc """
  The absolute value; the magnitude, a real number, of a complex one. The least
  signed integer wraps around to itself.
  #{promotion}
  ## Examples

      iex> Ferrox.abs(Ferrox.tensor([-1, 2])) |> Ferrox.to_list()
      [1, 2]

  """
  @spec abs(operand, keyword) :: Tensor.t()
  def abs(tensor, opts \\ []), do: Elementwise.unary(:abs, tensor, opts)

  @doc group: "Elementwise, two operands"
  @doc """
  Complex numbers of real and imaginary parts, which are broadcast together: c64 or, for 64-bit floats,
  c128.
  #{promotion}
  ## Examples

      iex> Ferrox.complex(Ferrox.tensor([1, 2]), 3)
      #Ferrox.Tensor<
        c64[2]
        [1.0+3.0i, 2.0+3.0i]
      >

  """
  @spec complex(operand, operand, keyword) :: Tensor.t()
  def complex(real, imag, opts \\ []), do: Elementwise.complex(real, imag, opts)

  @doc group: "Elementwise, one operand"
  @doc """
  The complex number mirrored at the real axis, c64 or, for 64-bit floats, c128.

  ## Examples

      iex> Ferrox.conjugate(Ferrox.tensor([1, 2])).type
      {:c, 64}
      iex> tensor = Ferrox.from_binary(<<1.0::float-32-native, 2.0::float-32-native>>, :c64)
      iex> tensor |> Ferrox.conjugate() |> Ferrox.imag() |> Ferrox.to_list()
      [-2.0]

  """
  @spec conjugate(operand) :: Tensor.t()
  def conjugate(tensor), do: Elementwise.unary(:conjugate, tensor, promotion: :nx)

  @doc group: "Elementwise, one operand"
  @doc """
  The real part of complex numbers; reals as floats.

  ## Examples

      iex> Ferrox.real(Ferrox.tensor([1, 2])) |> Ferrox.to_list()
      [1.0, 2.0]

  """
  @spec real(operand) :: Tensor.t()
  def real(tensor), do: Elementwise.part(:real, tensor)

  @doc group: "Elementwise, one operand"
  @doc """
  The imaginary part of complex numbers; zeros for reals.

  ## Examples

      iex> Ferrox.imag(Ferrox.tensor([1, 2])) |> Ferrox.to_list()
      [0.0, 0.0]

  """
  @spec imag(operand) :: Tensor.t()
  def imag(tensor), do: Elementwise.part(:imag, tensor)

  @doc group: "Elementwise, one operand"
  @doc """
  The angle of complex numbers, from -pi to pi.

  ## Examples

      iex> Ferrox.phase(Ferrox.tensor([1, -1])) |> Ferrox.to_list()
      [0.0, 3.1415927410125732]

  """
  @spec phase(operand) :: Tensor.t()
  def phase(tensor), do: Elementwise.unary(:phase, tensor, promotion: :nx)

  @doc group: "Elementwise, one operand"
  @doc """
  Converts to another type. Integers wrap around, floats are rounded to nearest
  with ties to even and truncated towards zero on their way to integers, complex
  numbers lose their imaginary part on their way to reals. What is not zero is
  true as a bool. The result is never weak.

  ## Options

    * `:promotion` - the system; JAX's without types of 64 bits takes those of 32

  ## Examples

      iex> Ferrox.as_type(Ferrox.tensor([1.7, -1.7, 300.0]), :u8) |> Ferrox.to_list()
      [1, 255, 44]
      iex> Ferrox.as_type(Ferrox.tensor([1, 2]), :f64) |> Ferrox.to_list()
      [1.0, 2.0]
      iex> Ferrox.as_type(Ferrox.tensor([0.0, 0.5, :nan]), :bool) |> Ferrox.to_list()
      [false, true, true]

  """
  @spec as_type(operand, Type.t() | Type.short_t() | :bool, keyword) :: Tensor.t()
  def as_type(tensor, type, opts \\ []), do: Elementwise.as_type(tensor, type, opts)

  @doc group: "Elementwise, one operand"
  @doc """
  The same bits as elements of another type of the same size, without a copy.

  ## Examples

      iex> Ferrox.bitcast(Ferrox.tensor([1.0]), :u32) |> Ferrox.to_list()
      [1065353216]

      iex> Ferrox.bitcast(Ferrox.tensor([1.0]), :u8)
      ** (ArgumentError) bitcast: elements of f32 have another size than those of u8

  """
  @spec bitcast(operand, Type.t() | Type.short_t()) :: Tensor.t()
  def bitcast(tensor, type), do: Elementwise.bitcast(tensor, type)

  ## Elementwise, three operands

  @doc group: "Elementwise, three operands"
  @doc """
  Elements of `on_true` where `pred` is not zero, of `on_false` elsewhere.

  The branches are broadcast to the shape of `pred`, unless it is a scalar; then
  they are broadcast together.
  #{promotion}
  ## Examples

      iex> Ferrox.select(Ferrox.tensor([1, 0, 1]), Ferrox.tensor([1, 2, 3]), 0) |> Ferrox.to_list()
      [1, 0, 3]

  """
  @spec select(operand, operand, operand, keyword) :: Tensor.t()
  def select(pred, on_true, on_false, opts \\ []),
    do: Elementwise.select(pred, on_true, on_false, opts)

  @doc group: "Elementwise, three operands"
  @doc """
  At least `min` and at most `max`, which are scalars. NaN stays NaN.
  #{promotion}
  ## Examples

      iex> Ferrox.clip(Ferrox.tensor([1, 5, 9]), 2, 6) |> Ferrox.to_list()
      [2, 5, 6]

  """
  @spec clip(operand, operand, operand, keyword) :: Tensor.t()
  def clip(tensor, min, max, opts \\ []), do: Elementwise.clip(tensor, min, max, opts)

  ## Reductions

  axes_options = """

  ## Options

    * `:axes` - the axes to reduce; all by default
    * `:keep_axes` - whether they stay, with size one; `false` by default
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`
  """

  reductions = [
    sum:
      {"The sum. Integers are summed in 32 bits, or in 64 if they have as many.",
       "Ferrox.sum(Ferrox.tensor([[1, 2], [3, 4]]), axes: [0])", [4, 6]},
    product:
      {"The product. Integers are multiplied in 32 bits, or in 64 if they have as many.",
       "Ferrox.product(Ferrox.tensor([[1, 2], [3, 4]]), axes: [1])", [2, 12]},
    reduce_max:
      {"The largest element; NaN if there is one.",
       "Ferrox.reduce_max(Ferrox.tensor([[1, 2], [3, 4]]), axes: [1])", [2, 4]},
    reduce_min:
      {"The smallest element; NaN if there is one.",
       "Ferrox.reduce_min(Ferrox.tensor([[1, 2], [3, 4]]), axes: [-1], keep_axes: true)",
       [[1], [3]]},
    all:
      {"1 where no element is zero, else 0, a u8.",
       "Ferrox.all(Ferrox.tensor([[0, 1], [1, 1]]), axes: [1])", [0, 1]},
    any:
      {"1 where some element is not zero, else 0, a u8.",
       "Ferrox.any(Ferrox.tensor([[0, 0], [0, 1]]), axes: [1])", [0, 1]}
  ]

  for {name, {text, code, result}} <- reductions do
    @doc group: "Reductions"
    @doc text <> "\n" <> axes_options <> example.(code, result)
    @spec unquote(name)(operand, keyword) :: Tensor.t()
    def unquote(name)(tensor, opts \\ []), do: Reduce.reduce(unquote(name), tensor, opts)
  end

  @doc group: "Reductions"
  @doc """
  The mean, a float: the sum divided by the number of elements.
  #{axes_options}
  ## Examples

      iex> Ferrox.mean(Ferrox.tensor([[1, 2], [3, 4]])) |> Ferrox.to_number()
      2.5

  """
  @spec mean(operand, keyword) :: Tensor.t()
  def mean(tensor, opts \\ []), do: Reduce.mean(tensor, opts)

  @doc group: "Reductions"
  @doc """
  The distance of the smallest and the largest element; NaN if there is one. The type is that of a difference:
  integers wrap around.
  #{axes_options}
  ## Examples

      iex> Ferrox.ptp(Ferrox.tensor([[4, 9], [2, 2]]), axes: [1]) |> Ferrox.to_list()
      [5, 0]

  """
  @spec ptp(operand, keyword) :: Tensor.t()
  def ptp(tensor, opts \\ []), do: Reduce.ptp(tensor, opts)

  @doc group: "Reductions"
  @doc """
  The sum of the diagonal of matrices, the last two axes; in NumPy they are the first two. It has the type of
  `sum/2`.

  ## Options

    * `:offset` - the diagonal; 0 by default, positive ones are above it
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.trace(Ferrox.tensor([[1, 2], [3, 4]])) |> Ferrox.to_number()
      5

  """
  @spec trace(operand, keyword) :: Tensor.t()
  def trace(tensor, opts \\ []), do: Diagonal.trace(tensor, opts)

  @doc group: "Reductions"
  @doc """
  The logarithm of the sum of the exponentials of the elements. It doesn't overflow or underflow where the
  result doesn't.

  The result is a float, as that of `divide/3`, computed in 64 bits and rounded once.

  ## Options

    * `:axes` - the axes to reduce; all by default
    * `:keep_axes` - whether they stay, with size one; `false` by default
    * `:exp_scaling_factor` - what the exponentials are multiplied with, a number or a tensor that broadcasts to
      the shape. Elements with a factor of zero count for nothing, whatever they are
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.logsumexp(Ferrox.tensor([[1, 2], [1000, 1000]]), axes: [1]) |> Ferrox.to_list()
      [2.3132617473602295, 1000.6931762695312]
      iex> factor = Ferrox.tensor([3, -1])
      iex> Ferrox.logsumexp(Ferrox.tensor([0, 0]), exp_scaling_factor: factor) |> Ferrox.to_number()
      0.6931471824645996

  """
  @spec logsumexp(operand, keyword) :: Tensor.t()
  def logsumexp(tensor, opts \\ []), do: Scaled.logsumexp(tensor, opts)

  @doc group: "Reductions"
  @doc """
  1 if all elements of both are equal within a tolerance, `|left - right| <= atol + rtol * |right|`,
  else 0: a u8, under other systems than Nx's a bool. The operands are broadcast together.

  ## Options

    * `:rtol` - the relative tolerance; 1.0e-5 by default
    * `:atol` - the absolute tolerance; 1.0e-8 by default
    * `:equal_nan` - whether NaN equals NaN; `false` by default
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> a = Ferrox.tensor([1.0, 1.0e10])
      iex> Ferrox.all_close(a, Ferrox.tensor([1.0, 1.000001e10])) |> Ferrox.to_number()
      1
      iex> Ferrox.all_close(a, Ferrox.tensor([1.1, 1.0e10])) |> Ferrox.to_number()
      0

  """
  @spec all_close(operand, operand, keyword) :: Tensor.t()
  def all_close(left, right, opts \\ []), do: Compare.all_close(left, right, opts)

  @doc group: "Elementwise, two operands"
  @doc """
  1 where the operands are equal within a tolerance, `|left - right| <= atol + rtol * |right|`, else 0: a u8,
  under other systems than Nx's a bool. `all_close/3` tells it of all elements together.

  Infinities are close to themselves alone. Distances of integers are exact.

  ## Options

    * `:rtol` - the relative tolerance; 1.0e-5 by default
    * `:atol` - the absolute tolerance; 1.0e-8 by default
    * `:equal_nan` - whether NaN equals NaN; `false` by default
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> a = Ferrox.tensor([1.0, 1.0e10, :nan])
      iex> Ferrox.isclose(a, Ferrox.tensor([1.1, 1.000001e10, :nan])) |> Ferrox.to_list()
      [0, 1, 0]
      iex> Ferrox.isclose(a, 1, rtol: 0.5, equal_nan: true) |> Ferrox.to_list()
      [1, 0, 0]

  """
  @spec isclose(operand, operand, keyword) :: Tensor.t()
  def isclose(left, right, opts \\ []), do: Compare.isclose(left, right, opts)

  @doc group: "Reductions"
  @doc """
  1 if both have the same shape and equal elements, else 0: a u8, under other systems than Nx's a bool. Nothing is
  broadcast. Types may differ, and elements are compared exactly.

  ## Options

    * `:equal_nan` - whether NaN equals NaN; `false` by default
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.array_equal(Ferrox.tensor([1, 2]), Ferrox.tensor([1.0, 2.0])) |> Ferrox.to_number()
      1
      iex> Ferrox.array_equal(Ferrox.tensor([1, 1]), 1) |> Ferrox.to_number()
      0

  """
  @spec array_equal(operand, operand, keyword) :: Tensor.t()
  def array_equal(left, right, opts \\ []), do: Compare.array_equal(left, right, opts)

  @doc group: "Reductions"
  @doc """
  How many elements aren't zero. NaN isn't zero.

  ## Options

    * `:axes` - the axes to reduce; all by default
    * `:keep_axes` - whether they stay, with size one; `false` by default
    * `:promotion` - the system that chooses the type of a count, which is that of an index

  ## Examples

      iex> Ferrox.count_nonzero(Ferrox.tensor([[0, 1, 7], [0, 0, 2]]), axes: [1]) |> Ferrox.to_list()
      [2, 1]

  """
  @spec count_nonzero(operand, keyword) :: Tensor.t()
  def count_nonzero(tensor, opts \\ []), do: Compare.count_nonzero(tensor, opts)

  for {name, op, adjective, example} <- [
        {:argmax, :reduce_max, "largest", [1, 0]},
        {:argmin, :reduce_min, "smallest", [0, 1]}
      ] do
    @doc group: "Reductions"
    @doc """
    The index of the #{adjective} element. NaN counts as more extreme than any
    number, and the last of several wins.

    ## Options

      * `:axis` - the axis to search; by default all of the tensor, in row-major order
      * `:keep_axis` - whether the axis stays, with size one; `false` by default
      * `:tie_break` - `:low` for the first, `:high` for the last of equal elements
      * `:type` - the type of the index; s32 by default, and s64 under most other systems
      * `:promotion` - the system that chooses it, see `Ferrox.Promotion`

    ## Examples

        iex> Ferrox.#{name}(Ferrox.tensor([[1, 2], [4, 3]]), axis: 1) |> Ferrox.to_list()
        #{inspect(example)}

    """
    @spec unquote(name)(operand, keyword) :: Tensor.t()
    def unquote(name)(tensor, opts \\ []),
      do: Reduce.arg_reduce(unquote(name), unquote(op), tensor, opts)
  end

  ## Statistics

  spread_options = """

  ## Options

    * `:axes` - the axes to reduce; all by default
    * `:keep_axes` - whether they stay, with size one; `false` by default
    * `:ddof` - what is subtracted from the number of elements that the sum is divided by; 0 by default
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`
  """

  @doc group: "Statistics"
  @doc """
  The variance: the mean of the squares of the distances from the mean, of complex numbers those of
  their magnitudes.

  The result is a float, as that of `mean/2`, and real. It is computed in two passes in 64 bits, and
  rounded once.
  #{spread_options}
  ## Examples

      iex> Ferrox.variance(Ferrox.tensor([1, 2, 3, 4])) |> Ferrox.to_number()
      1.25
      iex> Ferrox.variance(Ferrox.tensor([[1, 2], [3, 6]]), axes: [1], ddof: 1) |> Ferrox.to_list()
      [0.5, 4.5]

  """
  @spec variance(operand, keyword) :: Tensor.t()
  def variance(tensor, opts \\ []), do: Statistics.variance(tensor, opts)

  @doc group: "Statistics"
  @doc """
  The standard deviation: the square root of `variance/2`, rounded once.
  #{spread_options}
  ## Examples

      iex> Ferrox.standard_deviation(Ferrox.tensor([[1, 5], [4, 4]]), axes: [1]) |> Ferrox.to_list()
      [2.0, 0.0]

  """
  @spec standard_deviation(operand, keyword) :: Tensor.t()
  def standard_deviation(tensor, opts \\ []), do: Statistics.standard_deviation(tensor, opts)

  @doc group: "Statistics"
  @doc """
  The covariances of the columns of matrices, the last two axes, whose rows are observations. Computed
  in 64 bits and rounded once.

  ## Options

    * `:ddof` - what is subtracted from the number of rows that sums are divided by; 0 by default
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.covariance(Ferrox.tensor([[1, 2], [3, 4], [5, 6]]), ddof: 1) |> Ferrox.to_list()
      [[4.0, 4.0], [4.0, 4.0]]

  """
  @spec covariance(operand, keyword) :: Tensor.t()
  def covariance(tensor, opts \\ []), do: Statistics.covariance(tensor, opts)

  @doc group: "Statistics"
  @doc """
  The correlation coefficients of the columns of matrices, the last two axes, whose rows are observations: the
  covariances, divided by the standard deviations of both columns. They lie between -1 and 1, and are NaN for
  a column of equal elements.

  The result is a float, as that of `mean/2`, computed in 64 bits and rounded once.

  ## Options

    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.corrcoef(Ferrox.tensor([[1, 3], [2, 2], [3, 1]])) |> Ferrox.to_list()
      [[1.0, -1.0], [-1.0, 1.0]]

  """
  @spec corrcoef(operand, keyword) :: Tensor.t()
  def corrcoef(tensor, opts \\ []), do: Statistics.corrcoef(tensor, opts)

  @doc group: "Statistics"
  @doc """
  The mean of elements that count as much as their weights say: the sum of their products with these, divided
  by the sum of the weights. The weights have the shape of the tensor, or the sizes of the axes to reduce, in
  their order.

  The result is a float, computed in 64 bits and rounded once. A sum of weights of zero gives NaN or infinity.
  #{axes_options}
  ## Examples

      iex> Ferrox.weighted_mean(Ferrox.tensor([1, 2, 6]), Ferrox.tensor([2, 1, 1])) |> Ferrox.to_number()
      2.5
      iex> t = Ferrox.tensor([[1, 2], [3, 4]])
      iex> Ferrox.weighted_mean(t, Ferrox.tensor([3, 1]), axes: [0]) |> Ferrox.to_list()
      [1.5, 2.5]

  """
  @spec weighted_mean(operand, operand, keyword) :: Tensor.t()
  def weighted_mean(tensor, weights, opts \\ []),
    do: Statistics.weighted_mean(tensor, weights, opts)

  axis_options = """

  ## Options

    * `:axis` - the axis to reduce; by default all of the tensor
    * `:keep_axis` - whether it stays, with size one; `false` by default
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`
  """

  @doc group: "Statistics"
  @doc """
  The element in the middle of the sorted elements, or the mean of the two in the middle; NaN if there
  is one.

  The result is a float, as that of `mean/2`. Under Nx's system it has the type of the tensor where one
  element is in the middle.
  #{axis_options}
  ## Examples

      iex> Ferrox.median(Ferrox.tensor([[5, 1, 2], [4, 4, 3]]), axis: 1) |> Ferrox.to_list()
      [2, 4]
      iex> Ferrox.median(Ferrox.tensor([4, 1, 2, 9])) |> Ferrox.to_number()
      3.0

  """
  @spec median(operand, keyword) :: Tensor.t()
  def median(tensor, opts \\ []), do: Statistics.median(tensor, opts)

  @doc group: "Statistics"
  @doc """
  The most frequent element, of several the smallest. NaN is not equal to itself, and so never more frequent than
  another element. The type stays.

  ## Options

    * `:axis` - the axis to reduce; by default all of the tensor
    * `:keep_axis` - whether it stays, with size one; `false` by default

  ## Examples

      iex> Ferrox.mode(Ferrox.tensor([[3, 1, 3], [2, 1, 1]])) |> Ferrox.to_number()
      1
      iex> Ferrox.mode(Ferrox.tensor([[3, 1, 3], [2, 1, 1]]), axis: 1) |> Ferrox.to_list()
      [3, 1]

  """
  @spec mode(operand, keyword) :: Tensor.t()
  def mode(tensor, opts \\ []), do: Statistics.mode(tensor, opts)

  @doc group: "Statistics"
  @doc """
  The value below which a fraction of the sorted elements lies; NaN if there is one.

  The fraction is from 0 to 1, or a list or a vector of fractions, for which the result has a first axis.
  Between two elements, the value lies on a straight line, as by NumPy's method `linear`. The result is a
  float, as that of `mean/2`, computed in 64 bits and rounded once.
  #{axis_options}
  ## Examples

      iex> Ferrox.quantile(Ferrox.tensor([4, 1, 3, 2]), 0.5) |> Ferrox.to_number()
      2.5
      iex> Ferrox.quantile(Ferrox.tensor([[0, 10], [4, 30]]), [0.25, 1], axis: 0) |> Ferrox.to_list()
      [[1.0, 15.0], [4.0, 30.0]]

      iex> Ferrox.quantile(Ferrox.iota({3}), 2)
      ** (ArgumentError) quantile expects a number from 0 to 1, or a list or a vector of such, got: 2

  """
  @spec quantile(operand, number | [number] | Tensor.t(), keyword) :: Tensor.t()
  def quantile(tensor, fraction, opts \\ []),
    do: Statistics.quantile(:quantile, tensor, fraction, 1, opts)

  @doc group: "Statistics"
  @doc """
  `quantile/3` of a number from 0 to 100.
  #{axis_options}
  ## Examples

      iex> Ferrox.percentile(Ferrox.tensor([4, 1, 3, 2]), 50) |> Ferrox.to_number()
      2.5

  """
  @spec percentile(operand, number | [number] | Tensor.t(), keyword) :: Tensor.t()
  def percentile(tensor, percent, opts \\ []),
    do: Statistics.quantile(:percentile, tensor, percent, 100, opts)

  @doc group: "Statistics"
  @doc """
  How often each integer from zero on is among the elements, none of which is negative.

  ## Options

    * `:min_length` - the result has at least so many elements
    * `:promotion` - the system that chooses the type of a count, which is that of an index

  ## Examples

      iex> Ferrox.bincount(Ferrox.tensor([3, 1, 1]), min_length: 5) |> Ferrox.to_list()
      [0, 2, 0, 1, 0]

  """
  @spec bincount(operand, keyword) :: Tensor.t()
  def bincount(tensor, opts \\ []), do: Statistics.bincount(tensor, opts)

  @doc group: "Statistics"
  @doc """
  `{counts, edges}` of bins of equal width: how many elements lie in each, and where they begin and end. A
  bin has its lower edge, the last one its upper edge too.

  ## Options

    * `:bins` - how many there are; 10 by default
    * `:range` - `{low, high}`, by default from the least to the greatest element; what lies outside is
      not counted
    * `:promotion` - the system that chooses the types, see `Ferrox.Promotion`

  ## Examples

      iex> {counts, edges} = Ferrox.histogram(Ferrox.tensor([0, 1, 1, 4]), bins: 2)
      iex> {Ferrox.to_list(counts), Ferrox.to_list(edges)}
      {[3, 1], [0.0, 2.0, 4.0]}

  """
  @spec histogram(operand, keyword) :: {Tensor.t(), Tensor.t()}
  def histogram(tensor, opts \\ []), do: Statistics.histogram(tensor, opts)

  ## Elements that aren't NaN

  for {name, op, text, example} <- [
        {:nansum, :sum, "The sum of the elements that aren't NaN, of none zero.", 3.0},
        {:nanmax, :reduce_max, "The largest of the elements that aren't NaN, of none NaN.", 2.0},
        {:nanmin, :reduce_min, "The smallest of the elements that aren't NaN, of none NaN.", 1.0}
      ] do
    @doc group: "Statistics"
    @doc """
    #{text} The result has the type of `#{op}/2`.
    #{axes_options}
    ## Examples

        iex> Ferrox.#{name}(Ferrox.tensor([1, :nan, 2])) |> Ferrox.to_number()
        #{inspect(example)}

    """
    @spec unquote(name)(operand, keyword) :: Tensor.t()
    def unquote(name)(tensor, opts \\ []),
      do: NaN.reduce(unquote(name), unquote(op), tensor, opts)
  end

  @doc group: "Statistics"
  @doc """
  The mean of the elements that aren't NaN, of none NaN. A float, as that of `mean/2`, computed in 64 bits and
  rounded once.
  #{axes_options}
  ## Examples

      iex> Ferrox.nanmean(Ferrox.tensor([[1, :nan], [3, :nan]]), axes: [0]) |> Ferrox.to_list()
      [2.0, :nan]

  """
  @spec nanmean(operand, keyword) :: Tensor.t()
  def nanmean(tensor, opts \\ []), do: NaN.mean(tensor, opts)

  for {name, like, example} <- [
        {:nanvar, :variance, [4.0, :nan]},
        {:nanstd, :standard_deviation, [2.0, :nan]}
      ] do
    @doc group: "Statistics"
    @doc """
    `#{like}/2` of the elements that aren't NaN; NaN where there are no more of them than `:ddof`.
    #{spread_options}
    ## Examples

        iex> Ferrox.#{name}(Ferrox.tensor([[1, :nan], [5, :nan]]), axes: [0]) |> Ferrox.to_list()
        #{inspect(example)}

    """
    @spec unquote(name)(operand, keyword) :: Tensor.t()
    def unquote(name)(tensor, opts \\ []), do: NaN.spread(unquote(name), tensor, opts)
  end

  @doc group: "Statistics"
  @doc """
  The element in the middle of the sorted elements that aren't NaN, or the mean of the two in the middle; of
  none NaN. A float, as that of `mean/2`, under every system.
  #{axis_options}
  ## Examples

      iex> Ferrox.nanmedian(Ferrox.tensor([[1, :nan, 2], [3, 9, 5]]), axis: 1) |> Ferrox.to_list()
      [1.5, 5.0]

  """
  @spec nanmedian(operand, keyword) :: Tensor.t()
  def nanmedian(tensor, opts \\ []), do: NaN.median(tensor, opts)

  @doc group: "Elementwise, one operand"
  @doc """
  1 where the number is neither infinite nor NaN, else 0. The result is a u8, under other systems than Nx's a
  bool.
  #{promotion}
  ## Examples

      iex> Ferrox.isfinite(Ferrox.tensor([1.0, :nan, :infinity])) |> Ferrox.to_list()
      [1, 0, 0]

  """
  @spec isfinite(operand, keyword) :: Tensor.t()
  def isfinite(tensor, opts \\ []), do: NaN.finite(tensor, opts)

  @doc group: "Elementwise, one operand"
  @doc """
  Finite numbers in place of NaN and infinities, of complex numbers in both parts. The type stays.

  ## Options

    * `:nan` - what stands for NaN; 0 by default
    * `:posinf` and `:neginf` - what stands for positive and negative infinity; the largest and the smallest
      finite number of the type by default

  ## Examples

      iex> t = Ferrox.tensor([1.0, :nan, :infinity, :neg_infinity], type: :f16)
      iex> Ferrox.nan_to_num(t) |> Ferrox.to_list()
      [1.0, 0.0, 65504.0, -65504.0]
      iex> Ferrox.nan_to_num(t, nan: -1, posinf: 9) |> Ferrox.to_list()
      [1.0, -1.0, 9.0, -65504.0]

  """
  @spec nan_to_num(operand, keyword) :: Tensor.t()
  def nan_to_num(tensor, opts \\ []), do: NaN.replace(tensor, opts)

  ## Cumulative operations

  for {name, what, note, example} <- [
        {:cumulative_sum, "sums", " Integers keep their type, but for systems that widen sums.",
         [1, 4, 6]},
        {:cumulative_product, "products",
         " Integers keep their type, but for systems that widen products.", [1, 3, 6]},
        {:cumulative_min, "minima", "", [1, 1, 1]},
        {:cumulative_max, "maxima", "", [1, 3, 3]}
      ] do
    @doc group: "Cumulative operations"
    @doc """
    The #{what} of the elements up to each along an axis.#{note}

    ## Options

      * `:axis` - 0 by default
      * `:reverse` - whether to go from the end; `false` by default
      * `:promotion` - the system that chooses the type, see `Ferrox.Promotion.Results`

    ## Examples

        iex> Ferrox.#{name}(Ferrox.tensor([1, 3, 2])) |> Ferrox.to_list()
        #{inspect(example)}

    """
    @spec unquote(name)(operand, keyword) :: Tensor.t()
    def unquote(name)(tensor, opts \\ []), do: Cumulative.cumulative(unquote(name), tensor, opts)
  end

  @doc group: "Cumulative operations"
  @doc """
  The differences of neighbours along an axis, which is one shorter then.

  ## Options

    * `:order` - how often this is done; 1 by default
    * `:axis` - the last one by default
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.diff(Ferrox.tensor([1, 2, 4, 7, 0])) |> Ferrox.to_list()
      [1, 2, 3, -7]
      iex> Ferrox.diff(Ferrox.tensor([1, 2, 4, 7, 0]), order: 2) |> Ferrox.to_list()
      [1, 1, -10]

  """
  @spec diff(operand, keyword) :: Tensor.t()
  def diff(tensor, opts \\ []), do: Cumulative.diff(tensor, opts)

  @doc group: "Cumulative operations"
  @doc """
  The derivative along an axis: half of the distance between the neighbours of each element, divided by how
  far they are apart, and at both ends the distance from the neighbour.

  The result is a float, computed in 64 bits and rounded once. Other than NumPy's, it is along one axis.

  ## Options

    * `:spacing` - how far neighbours are apart, a number; 1 by default
    * `:axis` - the last one by default
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.gradient(Ferrox.tensor([1, 2, 4, 7])) |> Ferrox.to_list()
      [1.0, 1.5, 2.5, 3.0]
      iex> Ferrox.gradient(Ferrox.tensor([1, 2, 4, 7]), spacing: 0.5) |> Ferrox.to_list()
      [2.0, 3.0, 5.0, 6.0]

      iex> Ferrox.gradient(Ferrox.tensor([1]))
      ** (ArgumentError) gradient: axis 0 of shape {1} has one element, without a neighbour

  """
  @spec gradient(operand, keyword) :: Tensor.t()
  def gradient(tensor, opts \\ []), do: Cumulative.gradient(tensor, opts)

  @doc group: "Cumulative operations"
  @doc """
  The integral along an axis by the trapezoidal rule. The result is a float, computed in 64 bits and rounded
  once.

  ## Options

    * `:x` - where the elements lie, a vector
    * `:dx` - how far neighbours are apart where `:x` isn't given, a number; 1 by default
    * `:axis` - the last one by default
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.trapezoid(Ferrox.tensor([1, 2, 4])) |> Ferrox.to_number()
      4.5
      iex> Ferrox.trapezoid(Ferrox.tensor([1, 2, 4]), x: Ferrox.tensor([0, 2, 3])) |> Ferrox.to_number()
      6.0

  """
  @spec trapezoid(operand, keyword) :: Tensor.t()
  def trapezoid(tensor, opts \\ []), do: Cumulative.trapezoid(tensor, opts)

  ## Windows

  window_options = """

    * `:strides` - how far it is from one window to the next: an integer, or a list with one for each axis; 1
      by default
    * `:window_dilations` - how far it is from one element of a window to the next, in the same way; 1 by
      default
  """

  padding_option = """

    * `:padding` - what is around the elements, and counts for nothing: `:valid`, none, by default; `:same`, as
      much as leaves the shape as it is with strides of 1; or a list of `{low, high}` for each axis
  """

  for {name, what, note, example} <- [
        {:window_sum, "sums",
         "Integers keep their type and wrap around, but for systems that widen sums.", [3, 7, 9]},
        {:window_product, "products",
         "Integers keep their type and wrap around, but for systems that widen products.",
         [2, 10, 20]},
        {:window_max, "largest elements", "NaN if there is one.", [2, 5, 5]},
        {:window_min, "smallest elements", "NaN if there is one.", [1, 2, 4]}
      ] do
    @doc group: "Windows"
    @doc """
    The #{what} of the windows of a shape, which has a size for each axis. #{note}

    ## Options
    #{padding_option}#{window_options}
      * `:promotion` - the system that chooses the type, see `Ferrox.Promotion.Results`

    ## Examples

        iex> Ferrox.#{name}(Ferrox.tensor([1, 2, 5, 4]), {2}) |> Ferrox.to_list()
        #{inspect(example, charlists: :as_lists)}
        iex> Ferrox.#{name}(Ferrox.iota({4, 6}), {2, 3}, strides: [2, 3]).shape
        {2, 2}

        iex> Ferrox.#{name}(Ferrox.iota({2, 2}), {1, 3})
        ** (ArgumentError) #{name}: a window of shape {1, 3}, which is 3 long along an axis with its dilation, does not fit into 2 elements, padding included

    """
    @spec unquote(name)(operand, shape, keyword) :: Tensor.t()
    def unquote(name)(tensor, window, opts \\ []),
      do: Window.fold(unquote(name), tensor, window, opts)
  end

  @doc group: "Windows"
  @doc """
  The means of the windows of a shape, which has a size for each axis: their sums, divided by this size, as
  padding counts as zeros. The result is a float, as that of `mean/2`.

  ## Options
  #{padding_option}#{window_options}
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion.Results`

  ## Examples

      iex> Ferrox.window_mean(Ferrox.tensor([1, 2, 6, 4]), {2}) |> Ferrox.to_list()
      [1.5, 4.0, 5.0]

  """
  @spec window_mean(operand, shape, keyword) :: Tensor.t()
  def window_mean(tensor, window, opts \\ []), do: Window.mean(tensor, window, opts)

  @doc group: "Windows"
  @doc """
  The elements of the windows of a shape, which has a size for each axis. The result has the axes of the
  places of windows, then those of a window. Other than NumPy's, it is a copy: as many elements as all
  windows together have.

  ## Options
  #{window_options}
  ## Examples

      iex> Ferrox.sliding_window_view(Ferrox.tensor([1, 2, 5, 4]), {3}) |> Ferrox.to_list()
      [[1, 2, 5], [2, 5, 4]]
      iex> Ferrox.sliding_window_view(Ferrox.iota({4, 6}), {2, 3}).shape
      {3, 4, 2, 3}

  """
  @spec sliding_window_view(operand, shape, keyword) :: Tensor.t()
  def sliding_window_view(tensor, window, opts \\ []), do: Window.elements(tensor, window, opts)

  @doc group: "Windows"
  @doc """
  The convolution of neural networks: the sums of products of the filters of a kernel and the elements
  beside them at each place.

  A tensor of shape `{batch, channels, ...}` and a kernel of shape `{filters, channels, ...}`, with the same
  number of axes of space, give a tensor of shape `{batch, filters, ...}`. The kernel isn't reversed, as it
  is by `convolve/3`. The result is a float, as that of `divide/3`; padding consists of zeros.

  ## Options

    * `:padding` - `:valid`, none, by default; `:same`, as much as leaves the sizes as they are with strides of
      1; or a list of `{low, high}` for each axis of space
    * `:strides` - how far it is from one place of the kernel to the next: an integer, or a list with one for
      each axis of space; 1 by default
    * `:input_dilation` and `:kernel_dilation` - how far it is from one element to the next, in the same way;
      1 by default
    * `:feature_group_size` - in how many groups channels and filters are divided, which only see each other;
      1 by default
    * `:batch_group_size` - the same for the batch and the filters
    * `:input_permutation`, `:kernel_permutation` and `:output_permutation` - where the axes of batch and
      channels, or filters and channels, and those of space are; in this order by default
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> image = Ferrox.iota({1, 1, 3, 3}, type: :f32)
      iex> Ferrox.conv(image, Ferrox.full({1, 1, 2, 2}, 0.25)) |> Ferrox.to_list()
      [[[[2.0, 3.0], [5.0, 6.0]]]]
      iex> Ferrox.conv(image, Ferrox.full({5, 1, 3, 3}, 1), padding: :same, strides: 2).shape
      {1, 5, 2, 2}

  """
  @spec conv(operand, operand, keyword) :: Tensor.t()
  def conv(tensor, kernel, opts \\ []), do: Window.conv(tensor, kernel, opts)

  for {name, text, default, example} <- [
        {:convolve,
         "The convolution of two vectors: the sums of products of one and the other in reverse",
         "full", [1, 4, 7, 6]},
        {:correlate,
         "The correlation of two vectors: the sums of products of one and the conjugate of the other",
         "valid", [5, 8]}
      ] do
    @doc group: "Windows"
    @doc """
    #{text}, at each place where they overlap. All products are computed, so that the time is that of both
    lengths' product.

    The result has the type of `dot/3`: integers wrap around.

    ## Options

      * `:mode` - which places: `:full`, all; `:same`, as many as the longer vector has elements, in the middle;
        or `:valid`, those where the shorter one lies beside the longer one all along. `:#{default}` by default
      * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

    ## Examples

        iex> Ferrox.#{name}(Ferrox.tensor([1, 2, 3]), Ferrox.tensor([1, 2])) |> Ferrox.to_list()
        #{inspect(example, charlists: :as_lists)}

    """
    @spec unquote(name)(operand, operand, keyword) :: Tensor.t()
    def unquote(name)(left, right, opts \\ []), do: Window.unquote(name)(left, right, opts)
  end

  ## Sorts

  sort_options = """

    * `:axis` - 0 by default
    * `:direction` - `:asc` by default, or `:desc`
    * `:stable` - has no effect: equal elements always keep their order
  """

  @doc group: "Order"
  @doc """
  The elements in order along an axis. NaN is above infinity.

  ## Options
  #{sort_options}
  ## Examples

      iex> Ferrox.sort(Ferrox.tensor([3, 1, 2])) |> Ferrox.to_list()
      [1, 2, 3]
      iex> Ferrox.sort(Ferrox.tensor([[1, 2], [:nan, 0]]), axis: 1, direction: :desc) |> Ferrox.to_list()
      [[2.0, 1.0], [:nan, 0.0]]

  """
  @spec sort(operand, keyword) :: Tensor.t()
  def sort(tensor, opts \\ []), do: Sort.sort(tensor, opts)

  @doc group: "Order"
  @doc """
  The indices along an axis that sort the elements, as `take_along_axis/3` takes them.

  ## Options
  #{sort_options}
    * `:type` - the type of the indices; s32 by default, and s64 under most other systems
    * `:promotion` - the system that chooses it, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.argsort(Ferrox.tensor([3, 1, 2])) |> Ferrox.to_list()
      [1, 2, 0]

  """
  @spec argsort(operand, keyword) :: Tensor.t()
  def argsort(tensor, opts \\ []), do: Sort.argsort(tensor, opts)

  @doc group: "Order"
  @doc """
  `{values, indices}` of the largest elements along the last axis, the largest first.

  ## Options

    * `:k` - how many; 1 by default
    * `:promotion` - the system that chooses the type of the indices, see `Ferrox.Promotion`

  ## Examples

      iex> {values, indices} = Ferrox.top_k(Ferrox.tensor([3, 1, 2]), k: 2)
      iex> {Ferrox.to_list(values), Ferrox.to_list(indices)}
      {[3, 2], [0, 2]}

  """
  @spec top_k(operand, keyword) :: {Tensor.t(), Tensor.t()}
  def top_k(tensor, opts \\ []), do: Sort.top_k(tensor, opts)

  unique_axis = """

    * `:axis` - the axis along which the parts lie; by default the tensor is flattened, and parts are elements
  """

  unique_options =
    unique_axis <>
      "  * `:promotion` - the system that chooses the type of an index, see `Ferrox.Promotion`\n"

  @doc group: "Order"
  @doc """
  The values that the elements have, or the parts along an axis, each once and in order: parts are in the order of
  their first elements, then of their second ones, and so on. NaN is one value, and so is zero.

  ## Options
  #{unique_axis}
  ## Examples

      iex> Ferrox.unique(Ferrox.tensor([[3, 1], [3, 2]])) |> Ferrox.to_list()
      [1, 2, 3]
      iex> Ferrox.unique(Ferrox.tensor([[3, 2], [1, 5], [3, 2], [3, 1]]), axis: 0) |> Ferrox.to_list()
      [[1, 5], [3, 1], [3, 2]]

  """
  @spec unique(operand, keyword) :: Tensor.t()
  def unique(tensor, opts \\ []), do: Sort.unique(tensor, opts)

  @doc group: "Order"
  @doc """
  `{values, counts}`: those of `unique/2`, and how many elements or parts are each.

  ## Options
  #{unique_options}
  ## Examples

      iex> {values, counts} = Ferrox.unique_counts(Ferrox.tensor([3, 1, 3]))
      iex> {Ferrox.to_list(values), Ferrox.to_list(counts)}
      {[1, 3], [1, 2]}

  """
  @spec unique_counts(operand, keyword) :: {Tensor.t(), Tensor.t()}
  def unique_counts(tensor, opts \\ []), do: Sort.unique_counts(tensor, opts)

  @doc group: "Order"
  @doc """
  `{values, indices}`: those of `unique/2`, and the index of the first element or part that is each; of elements,
  in row-major order.

  ## Options
  #{unique_options}
  ## Examples

      iex> {values, indices} = Ferrox.unique_index(Ferrox.tensor([[7, 5], [5, 9]]))
      iex> {Ferrox.to_list(values), Ferrox.to_list(indices)}
      {[5, 7, 9], [1, 0, 3]}

  """
  @spec unique_index(operand, keyword) :: {Tensor.t(), Tensor.t()}
  def unique_index(tensor, opts \\ []), do: Sort.unique_index(tensor, opts)

  @doc group: "Order"
  @doc """
  `{values, inverse}`: those of `unique/2`, and the index among them of each element or part.

  ## Options
  #{unique_options}
  ## Examples

      iex> {values, inverse} = Ferrox.unique_inverse(Ferrox.tensor([[7, 5], [5, 9]]))
      iex> {Ferrox.to_list(values), Ferrox.to_list(inverse)}
      {[5, 7, 9], [[1, 0], [0, 2]]}
      iex> {values, inverse} = Ferrox.unique_inverse(Ferrox.tensor([[7, 5], [5, 9], [7, 5]]), axis: 0)
      iex> {Ferrox.to_list(values), Ferrox.to_list(inverse)}
      {[[5, 9], [7, 5]], [1, 0, 1]}

  """
  @spec unique_inverse(operand, keyword) :: {Tensor.t(), Tensor.t()}
  def unique_inverse(tensor, opts \\ []), do: Sort.unique_inverse(tensor, opts)

  @doc group: "Order"
  @doc """
  Where values belong among the sorted elements of a vector: how many of the elements are less than each
  value or, with `side: :right`, at most equal to it. The result has the shape of the values.

  Elements and values are compared exactly, whatever types they have; NaN is above infinity. The vector isn't
  checked: of elements that aren't in ascending order the result is arbitrary.

  ## Options

    * `:side` - `:left`, before equal elements, by default, or `:right`, after them
    * `:promotion` - the system that chooses the type of an index, see `Ferrox.Promotion`

  ## Examples

      iex> sorted = Ferrox.tensor([1, 3, 3, 7])
      iex> Ferrox.searchsorted(sorted, Ferrox.tensor([0, 3, 9])) |> Ferrox.to_list()
      [0, 1, 4]
      iex> Ferrox.searchsorted(sorted, 3, side: :right) |> Ferrox.to_number()
      3

      iex> Ferrox.searchsorted(Ferrox.iota({2, 2}), 3)
      ** (ArgumentError) searchsorted: the sorted elements must be a vector, got shape {2, 2}

  """
  @spec searchsorted(operand, operand, keyword) :: Tensor.t()
  def searchsorted(sorted, values, opts \\ []), do: Search.searchsorted(sorted, values, opts)

  @doc group: "Order"
  @doc """
  The number of the bin that each value lies in, by a vector with the edges of the bins in ascending or descending
  order: 0 before the first edge, 1 from there on, and so on. It is that of `searchsorted/3`, whose checks of
  types hold here too, but an order that is neither raises.

  ## Options

    * `:right` - whether a value on an edge belongs to the bin before it, rather than to the one after it; `false`
      by default
    * `:promotion` - the system that chooses the type of an index, see `Ferrox.Promotion`

  ## Examples

      iex> edges = Ferrox.tensor([0, 10, 20])
      iex> Ferrox.digitize(Ferrox.tensor([-1, 0, 15, 20]), edges) |> Ferrox.to_list()
      [0, 1, 2, 3]
      iex> Ferrox.digitize(Ferrox.tensor([-1, 0, 15, 20]), edges, right: true) |> Ferrox.to_list()
      [0, 0, 2, 2]

  """
  @spec digitize(operand, operand, keyword) :: Tensor.t()
  def digitize(values, edges, opts \\ []), do: Search.digitize(values, edges, opts)

  @doc group: "Order"
  @doc """
  1 where an element is among some values, else 0: a u8, under other systems than Nx's a bool. The values
  are a tensor of any shape, and are compared exactly. NaN is never among them.

  ## Options

    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.isin(Ferrox.tensor([[1, 2], [3, 4]]), Ferrox.tensor([4, 2, 9])) |> Ferrox.to_list()
      [[0, 1], [0, 1]]

  """
  @spec isin(operand, operand, keyword) :: Tensor.t()
  def isin(tensor, values, opts \\ []), do: Search.isin(tensor, values, opts)

  @doc group: "Order"
  @doc """
  The heights at `x`, of any shape, of the straight lines through points, whose coordinates are the vectors
  `xs`, in ascending order, and `ys`. Before the first point and after the last one, it is their height.

  Computed in 64 bits and rounded once, to the type of a quotient of the three or, if that is less precise,
  to the default float of the system.

  ## Options

    * `:left` - the height before the first point
    * `:right` - the height after the last point
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> {xs, ys} = {Ferrox.tensor([0, 1, 3]), Ferrox.tensor([0, 10, 20])}
      iex> Ferrox.interp(Ferrox.tensor([0.5, 2, 4]), xs, ys) |> Ferrox.to_list()
      [5.0, 15.0, 20.0]
      iex> Ferrox.interp(4, xs, ys, right: :nan) |> Ferrox.to_number()
      :nan

  """
  @spec interp(operand, operand, operand, keyword) :: Tensor.t()
  def interp(x, xs, ys, opts \\ []), do: Search.interp(x, xs, ys, opts)

  ## Products

  @doc group: "Products"
  @doc """
  The dot product: over the last axis of the left and the last but one (or the
  only) axis of the right operand; a plain product if either is a scalar.

  ## Options

    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.dot(Ferrox.tensor([1, 2]), Ferrox.tensor([3, 4])) |> Ferrox.to_number()
      11

      iex> a = Ferrox.tensor([[1, 2], [3, 4]])
      iex> Ferrox.dot(a, Ferrox.tensor([[0.0, 1.0], [1.0, 0.0]])) |> Ferrox.to_list()
      [[2.0, 1.0], [4.0, 3.0]]

  """
  @spec dot(operand, operand, keyword) :: Tensor.t()
  def dot(left, right, opts \\ []), do: Dot.dot(left, right, opts)

  @doc group: "Products"
  @doc """
  The dot product over the given axes; see `dot/7`.

  ## Examples

      iex> a = Ferrox.tensor([[1, 2], [3, 4]])
      iex> Ferrox.dot(a, [0], a, [0]) |> Ferrox.to_list()
      [[10, 14], [14, 20]]

  """
  @spec dot(operand, [axis], operand, [axis], keyword) :: Tensor.t()
  def dot(left, left_axes, right, right_axes, opts \\ []),
    do: dot(left, left_axes, [], right, right_axes, [], opts)

  @doc group: "Products"
  @doc """
  The dot product over the given axes, for each index of the axes of the batch.

  The result has the axes of the batch, then the other axes of the left, then those
  of the right operand.

  ## Examples

      iex> a = Ferrox.iota({2, 1, 3})
      iex> b = Ferrox.iota({2, 3, 1})
      iex> Ferrox.dot(a, [2], [0], b, [1], [0]) |> Ferrox.to_list()
      [[[5]], [[50]]]

  """
  @spec dot(operand, [axis], [axis], operand, [axis], [axis], keyword) :: Tensor.t()
  def dot(left, left_axes, left_batch, right, right_axes, right_batch, opts \\ []),
    do: Dot.dot_axes({left, left_axes, left_batch}, {right, right_axes, right_batch}, opts)

  @doc group: "Products"
  @doc """
  The product of matrices, the last two axes; the axes before them are a batch, and are broadcast together, as
  NumPy's `matmul`. A vector is a row at the left and a column at the right, and its axis of one isn't in the
  result.

  `dot/3` is the same for vectors and matrices. Of operands with more axes it gives the products of all pairs of
  matrices.

  ## Options

    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> a = Ferrox.tensor([[1, 2], [3, 4]])
      iex> Ferrox.matmul(a, Ferrox.tensor([1, 10])) |> Ferrox.to_list()
      [21, 43]
      iex> Ferrox.matmul(Ferrox.iota({5, 1, 2, 3}), Ferrox.iota({4, 3, 7})).shape
      {5, 4, 2, 7}
      iex> Ferrox.dot(Ferrox.iota({5, 1, 2, 3}), Ferrox.iota({4, 3, 7})).shape
      {5, 1, 2, 4, 7}

      iex> Ferrox.matmul(Ferrox.iota({2, 2}), 2)
      ** (ArgumentError) matmul expects vectors, matrices or batches of them, got shapes {2, 2} and {}; Ferrox.multiply/3 takes scalars

  """
  @spec matmul(operand, operand, keyword) :: Tensor.t()
  def matmul(left, right, opts \\ []), do: Dot.matmul(left, right, opts)

  @doc group: "Products"
  @doc """
  The products of each element of the left and each of the right operand, which are flattened.

  ## Options

    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.outer(Ferrox.tensor([1, 2]), Ferrox.tensor([3, 4, 5])) |> Ferrox.to_list()
      [[3, 4, 5], [6, 8, 10]]

  """
  @spec outer(operand, operand, keyword) :: Tensor.t()
  def outer(left, right, opts \\ []), do: Dot.outer(left, right, opts)

  @doc group: "Products"
  @doc """
  The product of each element of the left and the whole of the right operand, in its place: blocks as large as
  the right operand. The one with fewer axes has more of size one before them.

  ## Options

    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.kron(Ferrox.tensor([[1, 2], [3, 4]]), Ferrox.tensor([[1, 10]])) |> Ferrox.to_list()
      [[1, 10, 2, 20], [3, 30, 4, 40]]

  """
  @spec kron(operand, operand, keyword) :: Tensor.t()
  def kron(left, right, opts \\ []), do: Dot.kron(left, right, opts)

  @doc group: "Products"
  @doc """
  The cross product of vectors of three elements along an axis, which is perpendicular to both. The other axes are
  broadcast together.

  ## Options

    * `:axis` - the axis of both along which the vectors lie, and that of the result; the last one by default
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.cross(Ferrox.tensor([1, 2, 3]), Ferrox.tensor([[1, 0, 0], [0, 1, 0]])) |> Ferrox.to_list()
      [[0, 3, -2], [-3, 0, 1]]

      iex> Ferrox.cross(Ferrox.iota({2}), Ferrox.iota({3}))
      ** (ArgumentError) cross: vectors have three elements, got axis -1 of shape {2}

  """
  @spec cross(operand, operand, keyword) :: Tensor.t()
  def cross(left, right, opts \\ []), do: Dot.cross(left, right, opts)

  @doc group: "Products"
  @doc """
  Sums of products, by an equation with a letter for each axis of the operands and of the result, as NumPy's
  `einsum`: axes with the same letter go together, and those whose letter the result lacks are summed over.
  `...` stands for all axes without a letter, which are broadcast together and are in the result, too. Without
  `->`, the result has them, and then the letters that are there once, in alphabetical order.

  All operands are computed in the type that they have together.

  ## Options

    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> a = Ferrox.tensor([[1, 2], [3, 4]])
      iex> Ferrox.einsum("ij,jk->ik", [a, a]) |> Ferrox.to_list()
      [[7, 10], [15, 22]]
      iex> Ferrox.einsum("ii", [a]) |> Ferrox.to_number()
      5
      iex> Ferrox.einsum("...ij,jk->...ik", [Ferrox.iota({5, 4, 2, 3}), Ferrox.iota({3, 6})]).shape
      {5, 4, 2, 6}

      iex> Ferrox.einsum("ij,jk", [Ferrox.iota({2, 3}), Ferrox.iota({2, 3})])
      ** (ArgumentError) einsum: axis j of "ij,jk" has different sizes: 3, 2

  """
  @spec einsum(String.t(), [operand], keyword) :: Tensor.t()
  def einsum(equation, operands, opts \\ []), do: Einsum.einsum(equation, operands, opts)

  ## Shapes

  @doc group: "Shapes"
  @doc """
  The same elements in another shape, without a copy. One axis may be `:auto`.

  ## Examples

      iex> Ferrox.reshape(Ferrox.iota({6}), {2, :auto}) |> Ferrox.to_list()
      [[0, 1, 2], [3, 4, 5]]

      iex> Ferrox.reshape(Ferrox.iota({6}), {4})
      ** (ArgumentError) reshape: a tensor of shape {6} has 6 elements, which do not fill shape {4}

  """
  @spec reshape(operand, tuple) :: Tensor.t()
  def reshape(tensor, shape), do: Shapes.reshape(tensor, shape)

  @doc group: "Shapes"
  @doc """
  The axes in another order, by default reversed.

  ## Options

    * `:axes` - the axes of the tensor in the order of the result

  ## Examples

      iex> Ferrox.transpose(Ferrox.iota({2, 3})) |> Ferrox.to_list()
      [[0, 3], [1, 4], [2, 5]]

  """
  @spec transpose(operand, keyword) :: Tensor.t()
  def transpose(tensor, opts \\ []), do: Shapes.transpose(tensor, opts)

  @doc group: "Shapes"
  @doc """
  Repeats a tensor to fill a larger shape. Its axes are aligned at the right, unless
  `:axes` names where each goes; they keep their size or have size one.

  ## Options

    * `:axes` - the axis of the result for each axis of the tensor

  ## Examples

      iex> Ferrox.broadcast(Ferrox.tensor([1, 2]), {2, 2}) |> Ferrox.to_list()
      [[1, 2], [1, 2]]
      iex> Ferrox.broadcast(Ferrox.tensor([1, 2]), {2, 2}, axes: [0]) |> Ferrox.to_list()
      [[1, 1], [2, 2]]

  """
  @spec broadcast(operand, shape, keyword) :: Tensor.t()
  def broadcast(tensor, shape, opts \\ []), do: Shapes.broadcast(tensor, shape, opts)

  @doc group: "Shapes"
  @doc """
  Removes axes of size one, all of them by default.

  ## Options

    * `:axes` - the axes to remove

  ## Examples

      iex> Ferrox.shape(Ferrox.squeeze(Ferrox.iota({1, 2, 1})))
      {2}
      iex> Ferrox.shape(Ferrox.squeeze(Ferrox.iota({1, 2, 1}), axes: [0]))
      {2, 1}

      iex> Ferrox.squeeze(Ferrox.iota({1, 2}), axes: [1])
      ** (ArgumentError) squeeze: axis 1 of shape {1, 2} has size 2, not one

  """
  @spec squeeze(operand, keyword) :: Tensor.t()
  def squeeze(tensor, opts \\ []), do: Shapes.squeeze(tensor, opts)

  @doc group: "Shapes"
  @doc """
  Adds an axis of size one.

  ## Examples

      iex> Ferrox.shape(Ferrox.new_axis(Ferrox.iota({2, 3}), 0))
      {1, 2, 3}
      iex> Ferrox.shape(Ferrox.new_axis(Ferrox.iota({2, 3}), -1))
      {2, 3, 1}

  """
  @spec new_axis(operand, axis) :: Tensor.t()
  def new_axis(tensor, axis), do: Shapes.new_axis(tensor, axis)

  @doc group: "Shapes"
  @doc """
  A part of a tensor: from each axis as many elements as `lengths` says, from the
  index in `starts`. A start from which they would reach past the end is moved back.

  ## Options

    * `:strides` - of each axis only every n-th of those elements is kept

  ## Examples

      iex> t = Ferrox.iota({3, 4})
      iex> Ferrox.slice(t, [1, 1], [2, 3]) |> Ferrox.to_list()
      [[5, 6, 7], [9, 10, 11]]
      iex> Ferrox.slice(t, [0, 0], [3, 4], strides: [2, 3]) |> Ferrox.to_list()
      [[0, 3], [8, 11]]

      iex> Ferrox.slice(Ferrox.iota({3}), [0], [4])
      ** (ArgumentError) slice: length 4 is out of range for axis 0 of shape {3}

  """
  @spec slice(operand, [integer], [pos_integer], keyword) :: Tensor.t()
  def slice(tensor, starts, lengths, opts \\ []),
    do: Shapes.slice(tensor, starts, lengths, opts)

  @doc group: "Shapes"
  @doc """
  `slice/4` along one axis: `length` elements from `start` on.

  ## Options

    * `:axis` - 0 by default
    * `:strides` - only every n-th of those elements is kept; 1 by default

  ## Examples

      iex> Ferrox.slice_along_axis(Ferrox.iota({2, 4}), 1, 2, axis: 1) |> Ferrox.to_list()
      [[1, 2], [5, 6]]

  """
  @spec slice_along_axis(operand, integer, pos_integer, keyword) :: Tensor.t()
  def slice_along_axis(tensor, start, length, opts \\ []),
    do: Index.slice_along_axis(tensor, start, length, opts)

  @doc group: "Indices"
  @doc """
  The tensor with `slice` in place of its elements from `starts` on. A start from which the slice would
  reach past the end is moved back.

  ## Options

    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.put_slice(Ferrox.iota({2, 3}), [0, 1], Ferrox.tensor([[8, 9]])) |> Ferrox.to_list()
      [[0, 8, 9], [3, 4, 5]]

  """
  @spec put_slice(operand, [integer], operand, keyword) :: Tensor.t()
  def put_slice(tensor, starts, slice, opts \\ []),
    do: Index.put_slice(tensor, starts, slice, opts)

  @doc group: "Indices"
  @doc """
  The elements at some indices of an axis, which is replaced by the axes of the indices.

  ## Options

    * `:axis` - 0 by default

  ## Examples

      iex> t = Ferrox.tensor([[1, 2], [3, 4]])
      iex> Ferrox.take(t, Ferrox.tensor([1, 0, 1])) |> Ferrox.to_list()
      [[3, 4], [1, 2], [3, 4]]
      iex> Ferrox.take(t, 0, axis: 1) |> Ferrox.to_list()
      [1, 3]

      iex> Ferrox.take(Ferrox.iota({3}), Ferrox.tensor([3]))
      ** (ArgumentError) index 3 is out of bounds for axis 0 in shape {3}

  """
  @spec take(operand, operand, keyword) :: Tensor.t()
  def take(tensor, indices, opts \\ []), do: Index.take(tensor, indices, opts)

  @doc group: "Indices"
  @doc """
  The elements at the places of the indices, but with these as the indices of an axis.

  ## Options

    * `:axis` - 0 by default

  ## Examples

      iex> t = Ferrox.tensor([[3, 1, 2], [4, 6, 5]])
      iex> Ferrox.take_along_axis(t, Ferrox.argsort(t, axis: 1), axis: 1) |> Ferrox.to_list()
      [[1, 2, 3], [4, 5, 6]]

  """
  @spec take_along_axis(operand, operand, keyword) :: Tensor.t()
  def take_along_axis(tensor, indices, opts \\ []),
    do: Index.take_along_axis(tensor, indices, opts)

  @doc group: "Indices"
  @doc """
  The elements at rows of indices: the last axis of the indices has one for each of some axes of the
  tensor, of which the others stay.

  ## Options

    * `:axes` - those axes, in ascending order; the first ones by default

  ## Examples

      iex> t = Ferrox.tensor([[1, 2], [3, 4]])
      iex> Ferrox.gather(t, Ferrox.tensor([[1, 1], [0, 1]])) |> Ferrox.to_list()
      [4, 2]
      iex> Ferrox.gather(t, Ferrox.tensor([[1]])) |> Ferrox.to_list()
      [[3, 4]]

  """
  @spec gather(operand, operand, keyword) :: Tensor.t()
  def gather(tensor, indices, opts \\ []), do: Index.gather(tensor, indices, opts)

  @doc group: "Indices"
  @doc """
  Where the elements are that aren't zero: a tuple with a vector of indices for each axis, in row-major
  order. NaN isn't zero.

  How many there are depends on the values. There must be one at least: it raises where all are zero, which
  `any/2` tells.

  ## Options

    * `:promotion` - the system that chooses the type of the indices, see `Ferrox.Promotion`

  ## Examples

      iex> {rows, columns} = Ferrox.nonzero(Ferrox.tensor([[0, 5, 0], [6, 0, 7]]))
      iex> {Ferrox.to_list(rows), Ferrox.to_list(columns)}
      {[0, 1, 1], [1, 0, 2]}

      iex> Ferrox.nonzero(Ferrox.tensor([0, 0]))
      ** (ArgumentError) nonzero: no element of shape {2} differs from zero, and a tensor has at least one element; Ferrox.any/2 tells whether there are others

  """
  @spec nonzero(operand, keyword) :: tuple
  def nonzero(tensor, opts \\ []), do: Search.nonzero(tensor, opts)

  @doc group: "Indices"
  @doc """
  The indices of `nonzero/2` as a matrix, with one row for each element, as `gather/3`, `indexed_add/4` and
  `indexed_put/4` take them.

  ## Options

    * `:promotion` - the system that chooses the type of the indices, see `Ferrox.Promotion`

  ## Examples

      iex> t = Ferrox.tensor([[0, 5, 0], [6, 0, 7]])
      iex> Ferrox.argwhere(t) |> Ferrox.to_list()
      [[0, 1], [1, 0], [1, 2]]
      iex> Ferrox.gather(t, Ferrox.argwhere(t)) |> Ferrox.to_list()
      [5, 6, 7]

  """
  @spec argwhere(operand, keyword) :: Tensor.t()
  def argwhere(tensor, opts \\ []), do: Search.argwhere(tensor, opts)

  @doc group: "Indices"
  @doc """
  The elements where a mask isn't zero, as a vector in row-major order. A mask of only the first axes
  selects parts of the tensor, along one axis in their place.

  `tensor[mask]` is the same, but takes a mask of type `:bool` alone: a tensor of integers, as comparisons
  give under Nx's system, has indices there. Elements of a mask are replaced by `select/4`.

  How many there are depends on the values. There must be one at least: it raises for a mask of zeros, which
  `any/2` tells.

  ## Examples

      iex> t = Ferrox.tensor([[4, 1, 7], [9, 2, 0]])
      iex> Ferrox.extract(Ferrox.greater(t, 3), t) |> Ferrox.to_list()
      [4, 7, 9]
      iex> t[Ferrox.greater(t, 3, promotion: :numpy)] |> Ferrox.to_list()
      [4, 7, 9]
      iex> Ferrox.extract(Ferrox.tensor([0, 1]), t) |> Ferrox.to_list()
      [[9, 2, 0]]

      iex> Ferrox.extract(Ferrox.tensor([1, 0, 1]), Ferrox.iota({2, 3}))
      ** (ArgumentError) extract: a mask of shape {3} does not fit a tensor of shape {2, 3}: a mask has the sizes of all axes, or of the first ones

  """
  @spec extract(operand, operand) :: Tensor.t()
  def extract(mask, tensor), do: Search.extract(mask, tensor)

  for {name, text, example} <- [
        {:indexed_add,
         "with updates added to its elements at rows of indices, as often as a row is there",
         [0, 13, 2]},
        {:indexed_put,
         "with updates in place of its elements at rows of indices, of equal rows the last",
         [0, 7, 2]}
      ] do
    @doc group: "Indices"
    @doc """
    The target #{text}.

    The indices have the shape `{n, depth}`, with one index for each of `depth` axes of the target, and the
    updates the shape `{n, ...}` with the other axes. A vector of indices is one row.

    ## Options

      * `:axes` - those axes, in ascending order; the first ones by default
      * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

    ## Examples

        iex> t = Ferrox.tensor([0, 1, 2])
        iex> Ferrox.#{name}(t, Ferrox.tensor([[1], [1]]), Ferrox.tensor([5, 7])) |> Ferrox.to_list()
        #{inspect(example, charlists: :as_lists)}

    """
    @spec unquote(name)(operand, operand, operand, keyword) :: Tensor.t()
    def unquote(name)(target, indices, updates, opts \\ []),
      do: Index.indexed(unquote(name), target, indices, updates, opts)
  end

  @doc group: "Shapes"
  @doc """
  All elements along one axis, without a copy.

  ## Examples

      iex> Ferrox.flatten(Ferrox.iota({2, 2})) |> Ferrox.to_list()
      [0, 1, 2, 3]

  """
  @spec flatten(operand) :: Tensor.t()
  def flatten(tensor), do: Shapes.flatten(tensor)

  @doc group: "Shapes"
  @doc """
  The elements in reverse order along axes.

  ## Options

    * `:axes` - all by default

  ## Examples

      iex> Ferrox.reverse(Ferrox.iota({2, 2}), axes: [1]) |> Ferrox.to_list()
      [[1, 0], [3, 2]]

  """
  @spec reverse(operand, keyword) :: Tensor.t()
  def reverse(tensor, opts \\ []), do: Shapes.reverse(tensor, opts)

  @doc group: "Shapes"
  @doc """
  The tensor, repeated as a whole along its axes; the last number of times is that of the last axis.

  ## Examples

      iex> Ferrox.tile(Ferrox.tensor([1, 2]), [2, 2]) |> Ferrox.to_list()
      [[1, 2, 1, 2], [1, 2, 1, 2]]

  """
  @spec tile(operand, [pos_integer]) :: Tensor.t()
  def tile(tensor, repetitions), do: Shapes.tile(tensor, repetitions)

  @doc group: "Shapes"
  @doc """
  Each element, repeated a number of times.

  ## Options

    * `:axis` - the axis along which they are repeated; by default the tensor is flattened

  ## Examples

      iex> Ferrox.repeat(Ferrox.tensor([[1, 2]]), 2) |> Ferrox.to_list()
      [1, 1, 2, 2]
      iex> Ferrox.repeat(Ferrox.tensor([[1, 2]]), 2, axis: 0) |> Ferrox.to_list()
      [[1, 2], [1, 2]]

  """
  @spec repeat(operand, pos_integer, keyword) :: Tensor.t()
  def repeat(tensor, times, opts \\ []), do: Shapes.repeat(tensor, times, opts)

  @doc group: "Shapes"
  @doc """
  The tensor with a value around its elements and between them: for each axis `{low, high, interior}`,
  how many stand before the first, after the last, and between two. Negative ones remove elements.

  ## Options

    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.pad(Ferrox.tensor([1, 2]), 0, [{1, 2, 1}]) |> Ferrox.to_list()
      [0, 1, 0, 2, 0, 0]

  """
  @spec pad(operand, operand, [{integer, integer, non_neg_integer}], keyword) :: Tensor.t()
  def pad(tensor, value, padding, opts \\ []), do: Pad.pad(tensor, value, padding, opts)

  @doc group: "Shapes"
  @doc """
  The tensor with elements around it: for each axis `{low, high}`, how many stand before the first and after the
  last. Negative ones remove elements.

  They are all a value, a number or a scalar, or elements of the tensor:

    * `:replicate` - the first and the last one, again and again: `a a | a b c | c c`
    * `:reflect` - those from there on backwards, without the first and the last one: `c b | a b c | b a`
    * `:mirror` - with these, too: `b a | a b c | c b`
    * `:cyclic` - the tensor again: `b c | a b c | a b`

  ## Options

    * `:promotion` - the system that chooses the type with a value, see `Ferrox.Promotion`

  ## Examples

      iex> t = Ferrox.tensor([1, 2, 3])
      iex> Ferrox.pad_outer(t, :replicate, [{2, 1}]) |> Ferrox.to_list()
      [1, 1, 1, 2, 3, 3]
      iex> Ferrox.pad_outer(t, :reflect, [{2, 3}]) |> Ferrox.to_list()
      [3, 2, 1, 2, 3, 2, 1, 2]
      iex> Ferrox.pad_outer(t, :mirror, [{2, 1}]) |> Ferrox.to_list()
      [2, 1, 1, 2, 3, 3]
      iex> Ferrox.pad_outer(t, :cyclic, [{2, -1}]) |> Ferrox.to_list()
      [2, 3, 1, 2]
      iex> Ferrox.pad_outer(t, 0, [{1, 1}]) |> Ferrox.to_list()
      [0, 1, 2, 3, 0]

      iex> Ferrox.pad_outer(Ferrox.iota({3}), :wrap, [{1, 1}])
      ** (ArgumentError) pad_outer expects a number, a scalar, or one of :cyclic, :mirror, :reflect, :replicate, got: :wrap

  """
  @spec pad_outer(operand, operand | atom, [{integer, integer}], keyword) :: Tensor.t()
  def pad_outer(tensor, value_or_kind, padding, opts \\ []),
    do: Pad.outer(tensor, value_or_kind, padding, opts)

  @doc group: "Shapes"
  @doc """
  `pad_outer/4` with `:reflect`.

  ## Options

    * `:padding_config` - `{low, high}` for each axis, required

  ## Examples

      iex> Ferrox.reflect(Ferrox.tensor([1, 2, 3]), padding_config: [{2, 1}]) |> Ferrox.to_list()
      [3, 2, 1, 2, 3, 2]

  """
  @spec reflect(operand, keyword) :: Tensor.t()
  def reflect(tensor, opts), do: Pad.reflect(tensor, opts)

  @doc group: "Shapes"
  @doc """
  `{left, right}`: the parts of a tensor before and from an index on. A negative index counts from the end,
  a float is a fraction of the axis.

  ## Options

    * `:axis` - 0 by default

  ## Examples

      iex> {left, right} = Ferrox.split(Ferrox.iota({5}), 2)
      iex> {Ferrox.to_list(left), Ferrox.to_list(right)}
      {[0, 1], [2, 3, 4]}

  """
  @spec split(operand, integer | float, keyword) :: {Tensor.t(), Tensor.t()}
  def split(tensor, split, opts \\ []), do: Shapes.split(tensor, split, opts)

  @doc group: "Shapes"
  @doc """
  The parts of a tensor along an axis, in a list: so many of nearly the same length, of which the first ones
  are one longer, or those between indices in ascending order. Each part has at least one element.

  ## Options

    * `:axis` - 0 by default

  ## Examples

      iex> for part <- Ferrox.array_split(Ferrox.iota({5}), 2), do: Ferrox.to_list(part)
      [[0, 1, 2], [3, 4]]
      iex> for part <- Ferrox.array_split(Ferrox.iota({2, 4}), [1, 3], axis: 1), do: Ferrox.to_list(part)
      [[[0], [4]], [[1, 2], [5, 6]], [[3], [7]]]

      iex> Ferrox.array_split(Ferrox.iota({2}), 3)
      ** (ArgumentError) array_split: axis 0 of shape {2} can't be split by 3: expected a number of parts from 1 to 2, or a list of indices in ascending order from 1 to 1, as each part has at least one element

  """
  @spec array_split(operand, pos_integer | [pos_integer], keyword) :: [Tensor.t()]
  def array_split(tensor, parts, opts \\ []), do: Shapes.array_split(tensor, parts, opts)

  @doc group: "Shapes"
  @doc """
  The parts of a tensor along its first axis with some number of rows each, as a stream. The parts are made when they are
  asked for, without a copy, but for one that is filled up.

  ## Options

    * `:leftover` - where the last rows are fewer: `:repeat` by default, which fills them up with the first
      rows, or `:discard`, which leaves them out

  ## Examples

      iex> for part <- Ferrox.to_batched(Ferrox.iota({5}), 2), do: Ferrox.to_list(part)
      [[0, 1], [2, 3], [4, 0]]
      iex> for part <- Ferrox.to_batched(Ferrox.iota({5}), 2, leftover: :discard), do: Ferrox.to_list(part)
      [[0, 1], [2, 3]]

      iex> Ferrox.to_batched(Ferrox.iota({2, 3}), 4)
      ** (ArgumentError) to_batched: a part of shape {2, 3} must have from 1 to 2 rows, got: 4

  """
  @spec to_batched(operand, pos_integer, keyword) :: Enumerable.t()
  def to_batched(tensor, batch_size, opts \\ []), do: Shapes.to_batched(tensor, batch_size, opts)

  @doc group: "Shapes"
  @doc """
  The elements moved by so many places along an axis, with those that leave it at the end, or of a negative
  shift at the start, coming in again at the other side.

  ## Options

    * `:axis` - by default the tensor is flattened, and gets its shape back

  ## Examples

      iex> Ferrox.roll(Ferrox.iota({5}), 2) |> Ferrox.to_list()
      [3, 4, 0, 1, 2]
      iex> Ferrox.roll(Ferrox.iota({2, 3}), -1, axis: 1) |> Ferrox.to_list()
      [[1, 2, 0], [4, 5, 3]]

  """
  @spec roll(operand, integer, keyword) :: Tensor.t()
  def roll(tensor, shift, opts \\ []), do: Shapes.roll(tensor, shift, opts)

  @doc group: "Shapes"
  @doc """
  The tensor with two of its axes in each other's place.

  ## Examples

      iex> Ferrox.swapaxes(Ferrox.iota({2, 3, 4}), 0, -1).shape
      {4, 3, 2}

  """
  @spec swapaxes(operand, axis, axis) :: Tensor.t()
  def swapaxes(tensor, first, second), do: Shapes.swapaxes(tensor, first, second)

  @doc group: "Shapes"
  @doc """
  The tensor with one of its axes in another place, and the others in their order.

  ## Examples

      iex> Ferrox.moveaxis(Ferrox.iota({2, 3, 4}), 0, -1).shape
      {3, 4, 2}

  """
  @spec moveaxis(operand, axis, axis) :: Tensor.t()
  def moveaxis(tensor, source, destination), do: Shapes.moveaxis(tensor, source, destination)

  @doc group: "Shapes"
  @doc """
  The coordinates of the points of a grid, by a list of vectors with those along each axis: for each vector a
  tensor with its elements repeated along the axes of the others.

  ## Options

    * `:indexing` - `:xy` by default, with the first vector along the second axis and the second one along
      the first axis, as columns and rows of pictures; or `:ij`, with the vectors along the axes in order

  ## Examples

      iex> [x, y] = Ferrox.meshgrid([Ferrox.tensor([1, 2, 3]), Ferrox.tensor([7, 8])])
      iex> {Ferrox.to_list(x), Ferrox.to_list(y)}
      {[[1, 2, 3], [1, 2, 3]], [[7, 7, 7], [8, 8, 8]]}
      iex> [x, _y] = Ferrox.meshgrid([Ferrox.iota({3}), Ferrox.iota({2})], indexing: :ij)
      iex> x.shape
      {3, 2}

  """
  @spec meshgrid([operand], keyword) :: [Tensor.t()]
  def meshgrid(vectors, opts \\ []), do: Shapes.meshgrid(vectors, opts)

  @doc group: "Shapes"
  @doc """
  Joins tensors along an axis. The others must have the same sizes.

  ## Options

    * `:axis` - 0 by default
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> a = Ferrox.tensor([[1, 2]])
      iex> Ferrox.concatenate([a, Ferrox.tensor([[3.0, 4.0]])]) |> Ferrox.to_list()
      [[1.0, 2.0], [3.0, 4.0]]
      iex> Ferrox.concatenate([a, a], axis: 1) |> Ferrox.to_list()
      [[1, 2, 1, 2]]

  """
  @spec concatenate([operand], keyword) :: Tensor.t()
  def concatenate(tensors, opts \\ []), do: Shapes.join(:concatenate, tensors, opts)

  @doc group: "Shapes"
  @doc """
  Joins tensors of one shape along a new axis.

  ## Options

    * `:axis` - where the new axis is; 0 by default
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.stack([Ferrox.tensor([1, 2]), Ferrox.tensor([3, 4])]) |> Ferrox.to_list()
      [[1, 2], [3, 4]]
      iex> Ferrox.stack([1, 2, 3]) |> Ferrox.to_list()
      [1, 2, 3]

  """
  @spec stack([operand], keyword) :: Tensor.t()
  def stack(tensors, opts \\ []), do: Shapes.join(:stack, tensors, opts)

  for {name, what, example} <- [
        {:vstack, "one upon the other, as rows: along the first axis, of vectors along a new one",
         [[1, 2], [3, 4]]},
        {:hstack, "side by side, as columns: along the second axis, vectors along the only one",
         [1, 2, 3, 4]}
      ] do
    @doc group: "Shapes"
    @doc """
    Joins tensors #{what}. `concatenate/2` and `stack/2` join along any axis.

    ## Options

      * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

    ## Examples

        iex> Ferrox.#{name}([Ferrox.tensor([1, 2]), Ferrox.tensor([3, 4])]) |> Ferrox.to_list()
        #{inspect(example, charlists: :as_lists)}

    """
    @spec unquote(name)([operand], keyword) :: Tensor.t()
    def unquote(name)(tensors, opts \\ []), do: Shapes.unquote(name)(tensors, opts)
  end

  ## Explorer

  @doc group: "Explorer"
  @doc """
  The series of Explorer as a tensor with one axis.

  A series that is one piece of Arrow memory is not copied. Booleans become bools, dates and times
  the integers that stand for them, and categories their numbers (u32); `Explorer.Series.iotype/1`
  tells the type. Series of other elements, with elements that are nil, and empty ones raise.

  ## Examples

      iex> df = Explorer.DataFrame.new(a: [1.0, 2.0], b: [3.0, 4.0])
      iex> Ferrox.from_series(df["a"])
      #Ferrox.Tensor<
        f64[2]
        [1.0, 2.0]
      >
      iex> columns = for name <- Explorer.DataFrame.names(df), do: Ferrox.from_series(df[name])
      iex> Ferrox.stack(columns, axis: 1) |> Ferrox.to_list()
      [[1.0, 3.0], [2.0, 4.0]]

  """
  @spec from_series(struct) :: Tensor.t()
  def from_series(series), do: Series.from_series(series)

  @doc group: "Explorer"
  @doc """
  A tensor with one axis as a series of Explorer, which copies the elements into Arrow memory. A
  bool becomes a boolean.

  Series have integers of 8 to 64 bits, f32 and f64; other types raise.

  ## Examples

      iex> Ferrox.tensor([1, 2]) |> Ferrox.to_series() |> Explorer.Series.to_list()
      [1, 2]

  """
  @spec to_series(Tensor.t()) :: struct
  def to_series(%Tensor{} = tensor), do: Series.to_series(tensor)
  def to_series(other), do: not_a_tensor!(other, :to_series)

  ## Nx

  if Code.ensure_loaded?(Nx.Tensor) do
    @doc group: "Nx"
    @doc """
    The tensor of Nx as one of the direct API. Data of `Ferrox.Backend` and
    `Nx.BinaryBackend` are not copied; names are dropped.

    ## Examples

        iex> Ferrox.from_nx(Nx.tensor([1, 2])) |> Ferrox.to_list()
        [1, 2]

    """
    @spec from_nx(Nx.Tensor.t()) :: Tensor.t()
    def from_nx(%Nx.Tensor{vectorized_axes: [_ | _] = axes}) do
      raise ArgumentError,
            "from_nx expects a tensor without vectorized axes, got: #{inspect(axes)}; use Nx.devectorize/1"
    end

    def from_nx(%Nx.Tensor{type: type, shape: shape} = tensor),
      do: %Tensor{data: Nx.to_binary(tensor), type: type, shape: shape}

    def from_nx(other) do
      raise ArgumentError, "from_nx expects an Nx.Tensor, got: #{inspect(other)}"
    end

    @doc group: "Nx"
    @doc """
    The tensor as one of Nx, on `Ferrox.Backend`, without a copy. A bool becomes
    a u8.

    ## Examples

        iex> Ferrox.tensor([1, 2]) |> Ferrox.to_nx() |> Nx.to_flat_list()
        [1, 2]

    """
    @spec to_nx(Tensor.t()) :: Nx.Tensor.t()
    def to_nx(%Tensor{data: data, type: type, shape: shape}) do
      names = List.duplicate(nil, tuple_size(shape))
      type = Operands.storage(type)
      %Nx.Tensor{data: %Ferrox.Backend{state: data}, type: type, shape: shape, names: names}
    end

    def to_nx(other), do: not_a_tensor!(other, :to_nx)

    # The callbacks of Nx.Defn.Compiler, whose module is named by `compiler: Ferrox`.
    @behaviour Nx.Defn.Compiler

    @doc false
    defdelegate __jit__(key, vars, fun, args_list, opts), to: Ferrox.Defn
    @doc false
    defdelegate __compile__(key, vars, fun, opts), to: Ferrox.Defn
    @doc false
    defdelegate __partitions_options__(opts), to: Ferrox.Defn
    @doc false
    defdelegate __to_backend__(opts), to: Ferrox.Defn
    @doc false
    defdelegate __stream__(key, input, acc, vars, fun, args_list, opts), to: Ferrox.Defn
    @doc false
    defdelegate __shard_jit__(key, mesh, vars, fun, args_list, opts), to: Ferrox.Defn
  end
end
