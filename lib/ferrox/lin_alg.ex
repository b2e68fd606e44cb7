defmodule Ferrox.LinAlg do
  @moduledoc since: "0.1.0"
  @moduledoc """
  Linear algebra of matrices, the last two axes of a tensor; axes before them are a batch.

  The functions have the names and results of Nx's. Factorizations are native and have LAPACK's accuracy.
  The result is a float, f32 for integers or what the system in effect says, see `Ferrox.Promotion`; every
  function takes the option `:promotion`. Matrices that are not finite give NaN.

      iex> a = Ferrox.tensor([[2, 1], [1, 3]])
      iex> x = Ferrox.LinAlg.solve(a, Ferrox.tensor([3, 5]))
      iex> Ferrox.all_close(Ferrox.dot(a, x), Ferrox.tensor([3, 5])) |> Ferrox.to_number()
      1

  """

  import Ferrox.Operands, only: [boolean!: 3, native: 1, options!: 3, promotion!: 2, storage: 1]

  alias Ferrox.{Native, Operands, Promotion, Shape, Tensor, Type}
  alias Ferrox.Ops.{Create, Diagonal, Dot, Elementwise, Reduce, Sort}
  alias Ferrox.Ops.Shape, as: Shapes

  @typep operand :: Ferrox.operand()

  ## Factorizations

  @doc """
  The lower triangular matrix `l` with `l * adjoint(l)` equal to a Hermitian positive definite matrix.

  ## Examples

      iex> Ferrox.LinAlg.cholesky(Ferrox.tensor([[4, 2], [2, 5]])) |> Ferrox.to_list()
      [[2.0, 0.0], [1.0, 2.0]]

  """
  @spec cholesky(operand, keyword) :: Tensor.t()
  def cholesky(tensor, opts \\ []) do
    {%Tensor{shape: shape} = tensor, type} = square!(:cholesky, tensor, opts)
    [l] = factor(:cholesky, tensor, [{type, shape}])
    l
  end

  @doc """
  `{p, l, u}`: a permutation, a lower triangular matrix with ones on the diagonal, and an upper triangular
  one, whose product is the matrix. `p` has the type of the tensor.

  ## Examples

      iex> {p, l, u} = Ferrox.LinAlg.lu(Ferrox.tensor([[1, 2], [2, 8]]))
      iex> {Ferrox.to_list(p), Ferrox.to_list(l), Ferrox.to_list(u)}
      {[[0, 1], [1, 0]], [[1.0, 0.0], [0.5, 1.0]], [[2.0, 8.0], [0.0, -2.0]]}

  """
  @spec lu(operand, keyword) :: {Tensor.t(), Tensor.t(), Tensor.t()}
  def lu(tensor, opts \\ []) do
    {%Tensor{type: from, shape: shape} = tensor, type} = square!(:lu, tensor, opts)
    [p, l, u] = factor(:lu, tensor, [{storage(from), shape}, {type, shape}, {type, shape}])
    {%{p | type: from}, l, u}
  end

  @doc """
  `{q, r}`: a matrix with orthonormal columns and an upper triangular one, whose product is the matrix.

  ## Options

    * `:mode` - `:reduced` by default, with as many columns of `q` as the matrix has columns or rows,
      whichever are fewer, or `:complete`, with a square `q`
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> {q, r} = Ferrox.LinAlg.qr(Ferrox.tensor([[0, 2], [3, 4]]))
      iex> Ferrox.all_close(Ferrox.dot(q, r), Ferrox.tensor([[0, 2], [3, 4]]), atol: 1.0e-6) |> Ferrox.to_number()
      1

  """
  @spec qr(operand, keyword) :: {Tensor.t(), Tensor.t()}
  def qr(tensor, opts \\ []) do
    opts = options!(opts, [:mode, :promotion], :qr)
    {%Tensor{} = tensor, type, batch, m, n} = matrix!(:qr, tensor, opts)

    k =
      case Keyword.get(opts, :mode, :reduced) do
        :reduced ->
          min(m, n)

        :complete ->
          m

        other ->
          raise ArgumentError, "qr: :mode must be :reduced or :complete, got: #{inspect(other)}"
      end

    [q, r] =
      factor(:qr, tensor, [{type, shape(batch, [m, k])}, {type, shape(batch, [k, n])}], 1.0e-10)

    {q, r}
  end

  @doc """
  `{eigenvalues, eigenvectors}` of a Hermitian matrix, the vectors in columns. Of another matrix, those of its
  Hermitian part. The order is Nx's: from the largest magnitude to the smallest.

  ## Examples

      iex> {values, vectors} = Ferrox.LinAlg.eigh(Ferrox.tensor([[2, 0], [0, 5]]))
      iex> {Ferrox.to_list(values), Ferrox.to_list(vectors)}
      {[5.0, 2.0], [[0.0, 1.0], [1.0, 0.0]]}

  """
  @spec eigh(operand, keyword) :: {Tensor.t(), Tensor.t()}
  def eigh(tensor, opts \\ []) do
    {%Tensor{shape: shape} = tensor, type} = square!(:eigh, tensor, opts)
    values = Tuple.delete_at(shape, tuple_size(shape) - 1)
    [values, vectors] = factor(:eigh, tensor, [{type, values}, {type, shape}], 1.0e-4)
    {values, vectors}
  end

  @doc """
  The eigenvalues of a Hermitian matrix, of another one those of its Hermitian part: real numbers in ascending
  order, as NumPy's, where `eigh/2` has Nx's order.

  ## Examples

      iex> Ferrox.LinAlg.eigvalsh(Ferrox.tensor([[2, 0], [0, -5]])) |> Ferrox.to_list()
      [-5.0, 2.0]

  """
  @spec eigvalsh(operand, keyword) :: Tensor.t()
  def eigvalsh(tensor, opts \\ []) do
    {tensor, type} = square!(:eigvalsh, tensor, opts)
    {values, _vectors} = tensor |> Elementwise.cast(type) |> eigh(promotion: :nx)
    :real |> Elementwise.part(values) |> Elementwise.cast(real(type)) |> Sort.sort(axis: -1)
  end

  @doc """
  `{u, s, vt}`: the singular value decomposition of real matrices. `s` has the singular values, the largest
  first; the columns of `u` and the rows of `vt` are orthonormal, and `u * s * vt` is the matrix.

  ## Options

    * `:full_matrices?` - whether `u` and `vt` are square; `true` by default. Otherwise they have as many columns
      and rows as there are singular values
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> {_u, s, _vt} = Ferrox.LinAlg.svd(Ferrox.tensor([[3, 0], [0, -4]]))
      iex> Ferrox.to_list(s)
      [4.0, 3.0]

  """
  @spec svd(operand, keyword) :: {Tensor.t(), Tensor.t(), Tensor.t()}
  def svd(tensor, opts \\ []) do
    opts = options!(opts, [:full_matrices?, :promotion], :svd)
    full? = boolean!(Keyword.put_new(opts, :full_matrices?, true), :full_matrices?, :svd)
    {%Tensor{} = tensor, type, batch, m, n} = matrix!(:svd, tensor, opts)

    real!(:svd, type)
    k = min(m, n)
    {op, columns, rows} = if full?, do: {:svd, m, n}, else: {:thin_svd, k, k}
    shapes = [shape(batch, [m, columns]), shape(batch, [k]), shape(batch, [rows, n])]
    [u, s, vt] = factor(op, tensor, Enum.map(shapes, &{type, &1}))
    {u, s, vt}
  end

  @doc """
  The determinant of square matrices.

  ## Examples

      iex> Ferrox.LinAlg.determinant(Ferrox.tensor([[1, 2], [3, 4]])) |> Ferrox.to_number()
      -2.0

  """
  @spec determinant(operand, keyword) :: Tensor.t()
  def determinant(tensor, opts \\ []) do
    {%Tensor{shape: shape} = tensor, type} = square!(:determinant, tensor, opts)
    batch = shape |> Tuple.to_list() |> Enum.drop(-2) |> List.to_tuple()
    [determinant] = factor(:determinant, tensor, [{type, batch}])
    determinant
  end

  @doc """
  `{sign, logarithm}`: the sign of the determinant of square matrices, of complex ones a number of magnitude 1,
  and the logarithm of its magnitude, where the determinant itself may leave the range of floats. Of singular
  matrices they are 0 and negative infinity.

  The logarithm is real. It is computed in 64 bits, from a factorization in the type of the result.

  ## Examples

      iex> {sign, logarithm} = Ferrox.LinAlg.slogdet(Ferrox.tensor([[0, 1.0e-30], [1.0e-30, 0]]))
      iex> {Ferrox.to_number(sign), Ferrox.to_number(logarithm)}
      {-1.0, -138.1551055908203}

  """
  @spec slogdet(operand, keyword) :: {Tensor.t(), Tensor.t()}
  def slogdet(tensor, opts \\ []) do
    {%Tensor{shape: shape} = tensor, type} = square!(:slogdet, tensor, opts)
    tensor = Elementwise.cast(tensor, type)
    [p, _l, u] = factor(:lu, tensor, List.duplicate({type, shape}, 3))
    # That of a permutation is 1 or -1.
    sign = determinant(p, promotion: :nx)
    diagonal = Diagonal.take(u, [])
    magnitude = Elementwise.step(:abs, diagonal)
    zero? = Elementwise.step(:equal, magnitude, 0)
    signs = Elementwise.step(:divide, diagonal, magnitude)
    signs = Elementwise.cast(Elementwise.select(zero?, 0, signs, promotion: :nx), type)
    logarithms = Elementwise.step(:log, Elementwise.cast(magnitude, {:f, 64}))
    sign = Elementwise.step(:multiply, sign, Reduce.step(:product, signs, axes: [-1]))

    {Elementwise.cast(sign, type),
     Elementwise.cast(Reduce.step(:sum, logarithms, axes: [-1]), real(type))}
  end

  # The results of a factorization, by their types and shapes.
  defp factor(op, tensor, results, eps \\ 0.0) do
    data = Native.factor(op, results, eps, native(tensor))

    for {{type, shape}, data} <- Enum.zip(results, data),
        do: %Tensor{data: data, type: type, shape: shape}
  end

  ## Systems of equations

  @doc """
  The solution `x` of `a * x = b`, for square matrices `a`; `b` is a vector or has one in each column.

  ## Examples

      iex> Ferrox.LinAlg.solve(Ferrox.tensor([[2, 0], [0, 4]]), Ferrox.tensor([2, 2])) |> Ferrox.to_list()
      [1.0, 0.5]

      iex> Ferrox.LinAlg.solve(Ferrox.iota({2, 3}), Ferrox.iota({2}))
      ** (ArgumentError) solve expects square matrices, got a tensor of shape {2, 3}

  """
  @spec solve(operand, operand, keyword) :: Tensor.t()
  def solve(a, b, opts \\ []) do
    opts = options!(opts, [:promotion], :solve)
    solve_by(:lu, :solve, a, b, opts, true)
  end

  @doc """
  The solution of a system of equations with triangular matrices.

  ## Options

    * `:lower` - whether `a` is a lower triangle; `true` by default. The other triangle is not read
    * `:left_side` - `true` by default, for `a * x = b`; otherwise `x * a = b`
    * `:transform_a` - `:none` by default, or `:transpose` or `:conjugate`, for what stands in
      place of `a`
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> a = Ferrox.tensor([[2, 0], [1, 4]])
      iex> Ferrox.LinAlg.triangular_solve(a, Ferrox.tensor([2, 9])) |> Ferrox.to_list()
      [1.0, 2.0]

  """
  @spec triangular_solve(operand, operand, keyword) :: Tensor.t()
  def triangular_solve(a, b, opts \\ []) do
    opts = options!(opts, [:lower, :left_side, :transform_a, :promotion], :triangular_solve)
    opts = Keyword.merge([lower: true, left_side: true, transform_a: :none], opts)
    [lower?, left?] = for key <- [:lower, :left_side], do: boolean!(opts, key, :triangular_solve)
    transform = opts[:transform_a]

    unless transform in [:none, :transpose, :conjugate] do
      raise ArgumentError,
            "triangular_solve: :transform_a must be :none, :transpose or :conjugate, got: " <>
              inspect(transform)
    end

    solve_by({lower?, left?, transform}, :triangular_solve, a, b, opts, left?)
  end

  defp solve_by(how, name, a, b, opts, left?) do
    mode = promotion!(opts, name)
    [a, b] = for operand <- [a, b], do: Operands.tensor!(operand, mode, name)
    {batch, n} = square_shape!(name, a.shape)

    fits? =
      case Enum.split(Tuple.to_list(b.shape), length(batch)) do
        {^batch, [^n]} -> true
        {^batch, [rows, columns]} -> if(left?, do: rows, else: columns) == n
        _ -> false
      end

    unless fits? do
      raise ArgumentError,
            "#{name}: the right side of shape #{inspect(b.shape)} does not go with matrices of shape " <>
              inspect(a.shape)
    end

    type = Promotion.type_as(mode, :divide, name, [a, b])
    [a, b] = for tensor <- [a, b], do: Elementwise.cast(tensor, type)
    %{b | data: Native.solve(how, type, native(a), native(b))}
  end

  @doc """
  The inverse of square matrices.

  ## Examples

      iex> Ferrox.LinAlg.invert(Ferrox.tensor([[2, 0], [0, 4]])) |> Ferrox.to_list()
      [[0.5, 0.0], [0.0, 0.25]]

  """
  @spec invert(operand, keyword) :: Tensor.t()
  def invert(tensor, opts \\ []) do
    {%Tensor{shape: shape} = tensor, type} = square!(:invert, tensor, opts)
    one = %Tensor{data: Native.eye(type, shape), type: type, shape: shape}
    %{one | data: Native.solve(:lu, type, native(Elementwise.cast(tensor, type)), native(one))}
  end

  @doc """
  The pseudoinverse of real matrices, by the singular value decomposition. Singular values that can't be told
  from zero, those below the largest times the precision of the type times the longer side, count as zero.

  ## Examples

      iex> Ferrox.LinAlg.pinv(Ferrox.tensor([[2, 0], [0, 0], [0, 4]])) |> Ferrox.to_list()
      [[0.5, 0.0, 0.0], [0.0, 0.0, 0.25]]

  """
  @spec pinv(operand, keyword) :: Tensor.t()
  def pinv(tensor, opts \\ []) do
    opts = options!(opts, [:promotion], :pinv)
    {tensor, type, _batch, m, n} = matrix!(:pinv, tensor, opts)
    {u, s, vt} = svd(Elementwise.cast(tensor, type), full_matrices?: false, promotion: :nx)

    largest = Reduce.step(:reduce_max, s, axes: [-1], keep_axes: true)
    limit = Elementwise.step(:multiply, largest, precision(type) * max(m, n))
    inverse = Elementwise.step(:divide, Elementwise.cast(Create.tensor(1, []), type), s)
    inverse = Elementwise.select(Elementwise.step(:greater, s, limit), inverse, 0, promotion: :nx)
    v = Elementwise.step(:multiply, transposed(vt), Shapes.new_axis(inverse, -2))
    v |> Dot.dot_matrices(transposed(u)) |> Elementwise.cast(type)
  end

  @doc """
  The `x` with the least squares of `a * x - b`, and of those the shortest: `pinv(a) * b`, for a single matrix
  and a vector or a matrix.

  ## Examples

      iex> a = Ferrox.tensor([[1, 0], [1, 1], [1, 2]])
      iex> x = Ferrox.LinAlg.least_squares(a, Ferrox.tensor([1, 3, 5]))
      iex> Ferrox.all_close(x, Ferrox.tensor([1, 2]), atol: 1.0e-5) |> Ferrox.to_number()
      1

  """
  @spec least_squares(operand, operand, keyword) :: Tensor.t()
  def least_squares(a, b, opts \\ []) do
    mode = Operands.chosen_mode!(opts, :least_squares)
    [a, b] = for operand <- [a, b], do: Operands.tensor!(operand, mode, :least_squares)

    unless tuple_size(a.shape) == 2 and tuple_size(b.shape) in [1, 2] and
             elem(a.shape, 0) == elem(b.shape, 0) do
      raise ArgumentError,
            "least_squares expects a matrix, and a vector or a matrix of as many rows, got shapes " <>
              "#{inspect(a.shape)} and #{inspect(b.shape)}"
    end

    type = Promotion.type_as(mode, :divide, :least_squares, [a, b])
    inverse = pinv(Elementwise.cast(a, type), promotion: :nx)
    Dot.dot(inverse, Elementwise.cast(b, type), promotion: :nx)
  end

  ## Norms and products

  @doc """
  The norm of vectors or matrices.

  ## Options

    * `:ord` - by default the square root of the sum of squares, of all elements or along `:axes`. For vectors,
      a number (the sum of powers of the magnitudes and its root; 0 counts what is not zero), `:inf` or
      `:neg_inf`. For matrices, `:frobenius` (the default), 1, -1, `:inf` or `:neg_inf` (the largest or smallest
      sum of magnitudes of a column, or a row), 2, -2 or `:nuclear` (the largest, the smallest and the sum
      of the singular values)
    * `:axes` - one axis for vectors, two for matrices; by default all, of which there are one or two if there
      is an `:ord`
    * `:keep_axes` - whether the axes stay, with size one; `false` by default
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.LinAlg.norm(Ferrox.tensor([3, 4])) |> Ferrox.to_number()
      5.0
      iex> Ferrox.LinAlg.norm(Ferrox.tensor([[1, -2], [3, 4]]), ord: :inf) |> Ferrox.to_number()
      7.0
      iex> Ferrox.LinAlg.norm(Ferrox.tensor([[3, 4], [6, 8]]), axes: [1]) |> Ferrox.to_list()
      [5.0, 10.0]

  """
  @spec norm(operand, keyword) :: Tensor.t()
  def norm(tensor, opts \\ []) do
    opts = options!(opts, [:ord, :axes, :keep_axes, :promotion], :norm)
    mode = promotion!(opts, :norm)
    %Tensor{shape: shape} = tensor = Operands.tensor!(tensor, mode, :norm)
    type = Promotion.type_as(mode, :divide, :norm, [tensor, tensor])
    axes = Shape.axes!(shape, opts[:axes], :norm)
    keep? = boolean!(opts, :keep_axes, :norm)
    wide = Ferrox.Numbers.wide(type)
    result = real(type)

    # Sizes of one for the axes, so that each kind of norm reduces them in its own order.
    kept = tensor |> Elementwise.cast(wide) |> norm_of(opts[:ord], axes)
    norm = Elementwise.cast(kept, result)
    %{norm | shape: Shape.reduce(shape, axes, keep?)}
  end

  defp norm_of(tensor, ord, axes) when ord in [nil, :frobenius], do: root_of_squares(tensor, axes)
  defp norm_of(tensor, 2, [_] = axes), do: root_of_squares(tensor, axes)

  defp norm_of(tensor, ord, [axis]) when ord in [:inf, :neg_inf] or is_number(ord) do
    magnitude = Elementwise.step(:abs, tensor)
    reduce = &Reduce.step(&1, &2, axes: [axis], keep_axes: true)

    case ord do
      :inf ->
        reduce.(:reduce_max, magnitude)

      :neg_inf ->
        reduce.(:reduce_min, magnitude)

      zero when zero == 0 ->
        reduce.(:sum, Elementwise.cast(Elementwise.step(:not_equal, magnitude, 0), {:f, 64}))

      p ->
        Elementwise.step(:pow, reduce.(:sum, Elementwise.step(:pow, magnitude, p)), 1 / p)
    end
  end

  defp norm_of(tensor, ord, [_, _] = axes) when ord in [1, -1, :inf, :neg_inf] do
    [rows, columns] = axes
    {sum, other} = if ord in [1, -1], do: {rows, columns}, else: {columns, rows}
    sums = Reduce.step(:sum, Elementwise.step(:abs, tensor), axes: [sum], keep_axes: true)
    op = if ord in [1, :inf], do: :reduce_max, else: :reduce_min
    Reduce.step(op, sums, axes: [other], keep_axes: true)
  end

  defp norm_of(%Tensor{shape: shape} = tensor, ord, [_, _] = axes)
       when ord in [2, -2, :nuclear] do
    order = (Shape.all_axes(shape) -- axes) ++ axes

    {_u, s, _vt} =
      tensor |> Shapes.transpose(axes: order) |> svd(full_matrices?: false, promotion: :nx)

    op = %{2 => :reduce_max, -2 => :reduce_min, :nuclear => :sum}[ord]
    Reduce.step(op, s, axes: [-1])
  end

  defp norm_of(_tensor, ord, axes) do
    raise ArgumentError,
          "norm: :ord #{inspect(ord)} is no norm along #{length(axes)} axes: vectors have one, matrices two"
  end

  # Scaled by a power of two near the largest magnitude, so that no square leaves the range.
  defp root_of_squares(tensor, axes) do
    magnitude = Elementwise.step(:abs, tensor)
    largest = Reduce.step(:reduce_max, magnitude, axes: axes, keep_axes: true)
    power = Elementwise.step(:floor, Elementwise.logarithm(:log2, largest, promotion: :nx))
    scale = Elementwise.step(:pow, 2.0, Elementwise.clip(power, -1000, 1000, promotion: :nx))
    scaled = Elementwise.step(:divide, magnitude, scale)

    sum =
      Reduce.step(:sum, Elementwise.step(:multiply, scaled, scaled), axes: axes, keep_axes: true)

    Elementwise.step(:multiply, Elementwise.step(:sqrt, sum), scale)
  end

  @doc """
  The condition number of matrices: how much larger the relative error of a solution may be than that of the
  right side. It is infinite for singular matrices, and NaN if an element is.

  ## Options

    * `:ord` - the norm, as that of `norm/2` for matrices: by default 2, which with -2 is for real matrices of any
      shape. The others are for square ones, of which singular ones raise: they have no inverse
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.LinAlg.cond(Ferrox.tensor([[4, 0], [0, 2]])) |> Ferrox.to_number()
      2.0
      iex> Ferrox.LinAlg.cond(Ferrox.tensor([[1, 2], [2, 4]]), ord: :inf)
      ** (ArgumentError) can't solve for singular matrix

  """
  @spec cond(operand, keyword) :: Tensor.t()
  def cond(tensor, opts \\ []) do
    opts = options!(opts, [:ord, :promotion], :cond)
    {tensor, type, _batch, _m, _n} = matrix!(:cond, tensor, opts)
    tensor = Elementwise.cast(tensor, type)

    case Keyword.get(opts, :ord) || 2 do
      ord when ord in [2, -2] ->
        ratio(tensor, type, ord)

      ord ->
        _ = square_shape!(:cond, tensor.shape)
        norm = &norm(&1, ord: ord, axes: [-2, -1], promotion: :nx)
        inverse = invert(tensor, promotion: :nx)
        Elementwise.step(:multiply, norm.(tensor), norm.(inverse))
    end
  end

  # Of the largest to the smallest singular value, or the other way round.
  defp ratio(tensor, type, ord) do
    s = singular_values(:cond, tensor, type)

    [largest, smallest] = for op <- [:reduce_max, :reduce_min], do: Reduce.step(op, s, axes: [-1])

    if ord == 2 do
      ratio = Elementwise.step(:divide, largest, smallest)
      # Of zeros alone there is none.
      zero? = Elementwise.step(:equal, largest, 0)
      Elementwise.cast(Elementwise.select(zero?, :infinity, ratio, promotion: :nx), type)
    else
      Elementwise.step(:divide, smallest, largest)
    end
  end

  @doc """
  A square matrix, multiplied with itself so many times; negative powers are those of the inverse.

  ## Examples

      iex> Ferrox.LinAlg.matrix_power(Ferrox.tensor([[1, 1], [0, 1]]), 5) |> Ferrox.to_list()
      [[1, 5], [0, 1]]

  """
  @spec matrix_power(operand, integer, keyword) :: Tensor.t()
  def matrix_power(tensor, power, opts \\ [])

  def matrix_power(tensor, power, opts) when is_integer(power) and power < 0,
    do: tensor |> invert(opts) |> matrix_power(-power, opts)

  def matrix_power(tensor, power, opts) when is_integer(power) do
    mode = Operands.chosen_mode!(opts, :matrix_power)
    %Tensor{type: type, shape: shape} = tensor = Operands.tensor!(tensor, mode, :matrix_power)
    _ = square_shape!(:matrix_power, shape)
    # Where the type has a product, that is the tensor's type.
    _ = Promotion.type_as(mode, :dot, :matrix_power, [tensor, tensor])
    one = %Tensor{data: Native.eye(storage(type), shape), type: type, shape: shape}
    power(one, tensor, power, mode)
  end

  def matrix_power(_tensor, power, _opts) do
    raise ArgumentError, "matrix_power: the power must be an integer, got: #{inspect(power)}"
  end

  defp power(result, _base, 0, _mode), do: result

  defp power(result, base, power, mode) do
    result = if rem(power, 2) == 1, do: Dot.dot_matrices(result, base, mode), else: result
    power = div(power, 2)

    if power == 0,
      do: result,
      else: power(result, Dot.dot_matrices(base, base, mode), power, mode)
  end

  @doc """
  How many singular values of real matrices can be told from zero: are above the largest times `:eps` times the
  longer side. The result is a u32 or, under other systems than Nx's, the integer of an index.

  ## Options

    * `:eps` - the precision of the type by default, 1.2e-7 for f32, as in `pinv/2` and NumPy. Nx takes 1.0e-7 for
      all types
    * `:promotion` - the system that chooses the type, see `Ferrox.Promotion`

  ## Examples

      iex> Ferrox.LinAlg.matrix_rank(Ferrox.tensor([[1, 2], [2, 4]])) |> Ferrox.to_number()
      1
      iex> Ferrox.LinAlg.matrix_rank(Ferrox.tensor([[[1, 2], [3, 4]], [[0, 0], [0, 0]]])) |> Ferrox.to_list()
      [2, 0]

  """
  @spec matrix_rank(operand, keyword) :: Tensor.t()
  def matrix_rank(tensor, opts \\ []) do
    opts = options!(opts, [:eps, :promotion], :matrix_rank)
    {tensor, type, _batch, m, n} = matrix!(:matrix_rank, tensor, opts)
    s = singular_values(:matrix_rank, tensor, type)
    largest = Reduce.step(:reduce_max, s, axes: [-1], keep_axes: true)
    limit = Elementwise.step(:multiply, largest, eps!(opts[:eps], type) * max(m, n))
    above = Elementwise.cast(Elementwise.step(:greater, s, limit), {:u, 32})
    facts = opts |> promotion!(:matrix_rank) |> Promotion.facts()
    count = Reduce.step(:sum, above, axes: [-1])
    Elementwise.cast(count, if(facts.bool, do: facts.index, else: {:u, 32}))
  end

  defp eps!(nil, type), do: precision(type)
  defp eps!(eps, _type), do: Operands.not_negative!(eps, ":eps", :matrix_rank)

  @doc """
  The conjugates of the transposed matrices.

  ## Examples

      iex> Ferrox.LinAlg.adjoint(Ferrox.complex(Ferrox.tensor([[1, 2]]), 3)) |> Ferrox.imag() |> Ferrox.to_list()
      [[-3.0], [-3.0]]

  """
  @spec adjoint(operand) :: Tensor.t()
  def adjoint(tensor) do
    tensor = Operands.to_tensor(tensor, :adjoint)
    _ = matrix_shape!(:adjoint, tensor.shape)
    transposed = transposed(tensor)

    if match?({:c, _}, tensor.type),
      do: Elementwise.step(:conjugate, transposed),
      else: transposed
  end

  ## Shared

  defp transposed(%Tensor{shape: shape} = tensor) do
    rank = tuple_size(shape)
    Shapes.transpose(tensor, axes: Enum.to_list(0..(rank - 3)//1) ++ [rank - 1, rank - 2])
  end

  # Those of real matrices, the largest first.
  defp singular_values(name, tensor, type) do
    real!(name, type)
    {_u, s, _vt} = svd(Elementwise.cast(tensor, type), full_matrices?: false, promotion: :nx)
    s
  end

  defp real!(name, type) do
    if Type.complex?(type) do
      raise ArgumentError,
            "#{name} is not defined for #{Type.to_string(type)}: the numbers must be real"
    end
  end

  defp real({:c, bits}), do: {:f, div(bits, 2)}
  defp real(type), do: type

  defp precision({:f, 64}), do: 2.0 ** -52
  defp precision({:f, 32}), do: 2.0 ** -23
  defp precision({:f, 16}), do: 2.0 ** -10
  defp precision({:bf, 16}), do: 2.0 ** -7
  defp precision({:f8_e4m3fn, 8}), do: 2.0 ** -3
  defp precision({:f, 8}), do: 2.0 ** -2

  defp shape(batch, sizes), do: List.to_tuple(batch ++ sizes)

  # The tensor, and the float type of the results.
  defp square!(name, tensor, opts) do
    opts = options!(opts, [:promotion], name)
    {tensor, type, _batch, _m, _n} = matrix!(name, tensor, opts)
    _ = square_shape!(name, tensor.shape)
    {tensor, type}
  end

  defp matrix!(name, tensor, opts) do
    mode = promotion!(opts, name)
    tensor = Operands.tensor!(tensor, mode, name)
    {batch, m, n} = matrix_shape!(name, tensor.shape)
    type = Promotion.type_as(mode, :divide, name, [tensor, tensor])
    {tensor, type, batch, m, n}
  end

  defp matrix_shape!(name, shape) do
    case Enum.split(Tuple.to_list(shape), -2) do
      {batch, [m, n]} ->
        {batch, m, n}

      _ ->
        raise ArgumentError, "#{name} expects matrices, got a tensor of shape #{inspect(shape)}"
    end
  end

  defp square_shape!(name, shape) do
    case matrix_shape!(name, shape) do
      {batch, n, n} ->
        {batch, n}

      _ ->
        raise ArgumentError,
              "#{name} expects square matrices, got a tensor of shape #{inspect(shape)}"
    end
  end
end
