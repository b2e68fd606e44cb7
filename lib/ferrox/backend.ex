defmodule Ferrox.Backend do
  @moduledoc """
  A backend of Nx on Ferrox's native code, for Nx 0.9.2 and 0.13.1.

  Make it the default of an application or of a process:

      config :nx, default_backend: Ferrox.Backend
      Nx.global_default_backend(Ferrox.Backend)
      Nx.default_backend(Ferrox.Backend)

  A tensor's data are an ordinary binary, laid out as `Nx.BinaryBackend` lays it
  out, so transfers between the two cost nothing, and the operands of an operation
  may be on either.

  Results are those of `Nx.BinaryBackend`, with these deliberate differences:

    1. Floats follow IEEE 754 where Elixir's arithmetic raises (overflow gives an
       infinity, division by zero an infinity or NaN) and where it has rules of its
       own for infinities and NaN: the sign of a number divided by an infinity, `atan2`,
       `phase` and `tanh` of infinities, `pow` with an infinite or NaN operand, the `abs` of
       complex numbers with a NaN.
    2. bf16, f8 and f16 results are rounded once, to nearest with ties to even; there
       bf16 and f8 are truncated and f16 is rounded twice. f8_e4m3fn rounds ties to
       even too.
    3. `Nx.sign/1` of NaN is NaN and of a negative infinity -1; there both are 1.
       `Nx.clip/3` keeps NaN; there it becomes the lower bound.
    4. Functions have their accurate value where Nx or Complex has a formula that loses
       digits: `Nx.expm1/1`, `Nx.log1p/1`, `Nx.cbrt/1` and `Nx.erf_inv/1` of f64, and all
       functions of complex numbers, whose special values and branch cuts are those of C's
       Annex G. Other functions may differ in the last place; `exp`, `log`, `pow` and the
       circular functions of f64 are the C library's, as there. A zero keeps its sign in
       functions that are odd and in `Nx.round/1`. `Nx.add/2` and its kin round once where
       an integer meets f32 or a narrower float; there an f64 in between rounds, too.
    5. Integer division by zero, negative exponents of integers and negative shifts
       raise an `ArgumentError` that says so, and so do `Nx.sign/1` of complex numbers
       and `Nx.atan2/2` of numbers with an imaginary part.
    6. The subnormal numbers of f8, and up to Nx 0.9 its zeros, have their value;
       there they are misread.
    7. Complex zeros are false in `Nx.all/2` and `Nx.select/3`; there they are true.
    8. Sums, products, `Nx.dot/2`, `Nx.conv/3` and windows of floats may add up in
       another order, windows along their last axis first. Large products of matrices
       and convolutions of f32 and narrower types are computed in f32, and if one part
       of a complex element is not finite the other may be NaN. Cumulative sums and
       products are accumulated from left to right in 64 bits and rounded once an
       element, where Nx adds up pairs in the type of the tensor; sums of f64 carry along
       what is rounded off. Of zeros of either sign, cumulative minima and maxima keep
       the first.
    9. `Nx.window_scatter_max/5` and `Nx.window_scatter_min/5` compare elements and add
       up values exactly; there both go through 32-bit numbers. With padding they put
       values where Nx 0.13 does, in Nx 0.9 as well. Windows and kernels that are
       larger than the padded tensor raise an `ArgumentError`.
    10. `Nx.all_close/3` compares exact distances of integers, which wrap around there,
        and distances of floats in f64.
    11. The function of `Nx.window_reduce/5` is given scalar tensors, as Nx says; there it
        is given numbers. The accumulator, which is also what lies outside of the tensor,
        must be a value of the tensor's type.
    12. Operations on types of 2 and 4 bits work where they fail there: counting leading
        zeros, and the cumulative operations.
    13. `Nx.pad/3` gives the type that Nx says, the tensor's and the padding value's
        merged, and may cut off more than an axis has, if padding is left; there the
        tensor's type stays, whatever the padding, and cutting off too much raises. A
        result without elements raises an `ArgumentError`, also that of `Nx.irfft/2` of
        one element without a length.
    14. `Nx.indexed_add/4` and `Nx.indexed_put/4` with updates smaller than two or more
        axes of the target are for the start of each of these axes; there they are for as
        many elements in a row.
    15. Fourier transforms are right along every axis, and of length one; there those
        of real tensors of length one fail, and the axes before the last two are mixed
        up. Transforms along two axes round once.
    16. Factorizations are as accurate as LAPACK's, whatever `:eps` and `:max_iter`, and
        have its range: a value becomes zero only where it can't be told from rounding
        of its own row and column, singular values don't lose half of their digits, and
        the vectors of zero ones are orthonormal. Determinants of two and three rows are
        accurate, and others as elimination with pivots gives them; none over- or
        underflows on the way. Signs of eigenvectors and singular vectors: the largest
        component of each eigenvector, or right singular vector, is positive.
        Well-conditioned matrices of f32 no larger than those in Nx's documentation
        (eigenvectors and singular vectors up to 3, or 4 of the longer side) go through
        the steps of `Nx.LinAlg` of the same release, natively, and have its digits and
        signs; so do thin decompositions of integers with two columns, whose left
        vectors are then up to 192 roundings from orthonormal.
    17. `Nx.LinAlg.eigh/2` takes the Hermitian part of its argument. Eigenvalues, singular
        values and QR factors of a matrix that isn't finite are NaN.
    18. `Nx.Random.normal/4` of type bf16 gives a negative infinity once in about 128 numbers:
        the least argument that Nx gives `Nx.erf_inv/1` there is the one above -1 of f16, which
        rounds to -1 in bf16 and is truncated to a number above -1 there. Draw f32 and round:
        `Nx.Random.normal(key, 0.0, 1.0, type: :f32)`, then `Nx.as_type(tensor, :bf16)`.

  Reductions with an Elixir function call it once an element. Pointers are refused, as
  there: the VM moves and frees the data of a tensor as it sees fit.

  ## Other nodes

  A tensor crosses to another node by ordinary distribution, but a node without Ferrox has no
  module that could do anything with it, `inspect/2` included. Send what
  `Nx.backend_transfer(tensor, Nx.BinaryBackend)` gives, which copies nothing. A serving that
  answers requests from other nodes does so in the function given to
  `Nx.Serving.distributed_postprocessing/2`. See the guide on backends.

  ## Inspection

  Tensors show `Ferrox.Backend` when inspected, unless configured off at compile
  time:

      config :ferrox, :add_backend_on_inspect, false

  """

  import Kernel, except: [inspect: 2]

  alias Ferrox.Backend.{Default, Fold, Fourier, LinAlg}
  alias Ferrox.{Native, Numbers}

  if Code.ensure_loaded?(Nx.Backend), do: @behaviour(Nx.Backend)

  @enforce_keys [:state]
  defstruct [:state]

  @typedoc "The data, as `Nx.to_binary/1` gives them."
  @type t :: %__MODULE__{state: bitstring}

  @doc false
  def init([]), do: []

  def init(opts) do
    raise ArgumentError, "Ferrox.Backend takes no options, got: #{Kernel.inspect(opts)}"
  end

  ## Creation

  @doc false
  def constant(%{type: type, shape: shape} = out, number, _opts) do
    scalar = Numbers.constant(number, type)
    put(out, if(shape == {}, do: scalar, else: Native.broadcast(shape, [], {type, {}, scalar})))
  end

  @doc false
  def from_binary(out, binary, _opts), do: put(out, binary)

  @doc false
  def iota(%{type: type, shape: shape} = out, axis, _opts),
    do: put(out, Native.iota(type, shape, axis))

  @doc false
  def eye(%{type: type, shape: shape} = out, _opts), do: put(out, Native.eye(type, shape))

  ## Transfer and reading

  @doc false
  def backend_copy(tensor, backend, _opts) when backend in [__MODULE__, Nx.Tensor], do: tensor

  def backend_copy(%{data: %{state: state}} = tensor, backend, opts),
    do: backend.from_binary(tensor, state, opts)

  @doc false
  def backend_transfer(tensor, backend, opts), do: backend_copy(tensor, backend, opts)

  @pointers "Ferrox.Backend has no pointers: the data of a tensor are a binary that the VM " <>
              "moves and frees as it sees fit, so that no address of it stays valid, and memory " <>
              "at an address from elsewhere can't be checked; use Nx.to_binary/1 and Nx.from_binary/3"

  @doc false
  def from_pointer(_pointer, _type, _shape, _backend_opts, _opts),
    do: raise(ArgumentError, @pointers)

  @doc false
  def to_pointer(_tensor, _opts), do: raise(ArgumentError, @pointers)

  # The garbage collector knows the data; there is nothing to free by hand.
  @doc false
  def backend_deallocate(_tensor), do: :ok

  @doc false
  def to_binary(%{type: {_, bits}, data: %{state: state}}, limit) do
    if limit * bits == bit_size(state), do: state, else: part(state, 0, limit * bits)
  end

  @doc false
  def to_batched(%{shape: batch_shape, type: {_, bits}} = out, %{shape: shape} = tensor, opts) do
    state = tensor.data.state
    [size, available] = Enum.map([batch_shape, shape], &elem(&1, 0))
    batch_bits = Native.size(batch_shape) * bits
    full = div(available, size)
    repeats? = rem(available, size) != 0 and opts[:leftover] == :repeat

    Stream.map(0..if(repeats?, do: full, else: full - 1)//1, fn
      ^full ->
        # What is missing of the last batch is taken from the start.
        rest = bit_size(state) - full * batch_bits
        tail = part(state, full * batch_bits, rest)
        put(out, <<tail::bitstring, part(state, 0, batch_bits - rest)::bitstring>>)

      i ->
        put(out, part(state, i * batch_bits, batch_bits))
    end)
  end

  defp part(bits, start, length) do
    <<_::bitstring-size(start), part::bitstring-size(length), _::bitstring>> = bits
    part
  end

  @doc false
  def inspect(%{shape: shape} = tensor, opts) do
    size = Native.size(shape)
    limit = if opts.limit == :infinity, do: size, else: min(opts.limit + 1, size)
    sign(apply(Nx.Backend, :inspect, [tensor, to_binary(tensor, limit), opts]))
  end

  if Application.compile_env(:ferrox, :add_backend_on_inspect, true) do
    defp sign(document),
      do: Inspect.Algebra.concat(["Ferrox.Backend", Inspect.Algebra.line(), document])
  else
    defp sign(document), do: document
  end

  ## Type and shape

  @doc false
  def as_type(%{type: type} = out, %{type: type} = tensor), do: put(out, tensor.data.state)
  def as_type(%{type: type} = out, tensor), do: put(out, Native.as_type(type, operand(tensor)))

  # These only change how the data are read.
  for {name, arity} <- [bitcast: 2, reshape: 2, squeeze: 3] do
    rest = Macro.generate_arguments(arity - 2, __MODULE__)

    @doc false
    def unquote(name)(out, tensor, unquote_splicing(rest)) do
      _ = unquote(rest)
      put(out, tensor.data.state)
    end
  end

  @doc false
  def broadcast(out, tensor, shape, axes),
    do: put(out, Native.broadcast(shape, axes, operand(tensor)))

  @doc false
  def transpose(%{shape: shape} = out, tensor, axes),
    do: put(out, Native.transpose(shape, axes, operand(tensor)))

  @doc false
  def reverse(%{shape: shape} = out, tensor, axes),
    do: put(out, Native.reverse(shape, axes, operand(tensor)))

  @doc false
  def slice(%{shape: shape} = out, tensor, starts, lengths, strides) do
    starts = starts(starts, Tuple.to_list(tensor.shape), lengths)
    put(out, Native.slice(shape, starts, lengths, strides, operand(tensor)))
  end

  # Moved so that what is sliced is within the shape.
  defp starts([start | starts], [dim | dims], [length | lengths]),
    do: [start |> index() |> max(0) |> min(dim - length) | starts(starts, dims, lengths)]

  defp starts([], [], []), do: []

  # A start may be computed, and then is a tensor.
  defp index(integer) when is_integer(integer), do: integer
  defp index(%{type: type, data: %{state: state}}), do: hd(Numbers.decode(state, type, 1))

  @doc false
  def concatenate(%{type: type, shape: shape} = out, tensors, axis) do
    put(out, Native.concatenate(type, shape, axis, Enum.map(tensors, &cast(&1, type))))
  end

  @doc false
  def stack(%{type: type, shape: shape} = out, tensors, axis) do
    operands =
      for tensor <- tensors do
        {type, shape, data} = cast(tensor, type)
        {type, Tuple.insert_at(shape, axis, 1), data}
      end

    put(out, Native.concatenate(type, shape, axis, operands))
  end

  defp cast(%{type: type} = tensor, type), do: operand(tensor)
  defp cast(tensor, type), do: {type, tensor.shape, Native.as_type(type, operand(tensor))}

  ## Elementwise

  @binary_ops [:add, :subtract, :multiply, :pow, :remainder, :divide, :atan2, :min, :max] ++
                [:quotient, :bitwise_and, :bitwise_or, :bitwise_xor, :left_shift, :right_shift] ++
                [:equal, :not_equal, :greater, :less, :greater_equal, :less_equal] ++
                [:logical_and, :logical_or, :logical_xor]

  for op <- @binary_ops do
    @doc false
    def unquote(op)(%{type: type, shape: shape} = out, left, right),
      do: put(out, Native.binary(unquote(op), type, shape, operand(left), operand(right)))
  end

  @unary_ops [:exp, :expm1, :log, :log1p, :sigmoid, :cos, :sin, :tan, :tanh, :sqrt, :rsqrt] ++
               [:asin, :acos, :atan, :sinh, :cosh, :asinh, :acosh, :atanh, :cbrt] ++
               [:erf, :erfc, :erf_inv, :conjugate, :real, :imag, :phase] ++
               [:abs, :bitwise_not, :ceil, :floor, :negate, :round, :sign] ++
               [:is_nan, :is_infinity, :logical_not, :population_count, :count_leading_zeros]

  for op <- @unary_ops do
    @doc false
    def unquote(op)(%{type: type} = out, tensor),
      do: put(out, Native.unary(unquote(op), type, operand(tensor)))
  end

  @doc false
  def select(%{type: type, shape: shape} = out, pred, on_true, on_false) do
    put(out, Native.select(type, shape, operand(pred), operand(on_true), operand(on_false)))
  end

  @doc false
  def clip(%{type: type, shape: shape} = out, tensor, min, max),
    do: put(out, Native.clip(type, shape, operand(tensor), operand(min), operand(max)))

  ## Indices, sorts and padding

  @doc false
  def pad(%{type: type, shape: shape} = out, tensor, value, paddings) do
    if Enum.any?(Tuple.to_list(shape), &(&1 < 1)) do
      raise ArgumentError,
            "pad: nothing is left of a tensor of shape #{Kernel.inspect(tensor.shape)} with the " <>
              "padding #{Kernel.inspect(paddings)}, which gives the shape #{Kernel.inspect(shape)}"
    end

    put(out, Native.pad(type, shape, paddings, operand(tensor), operand(value)))
  end

  @doc false
  def put_slice(%{type: type} = out, tensor, starts, slice) do
    starts = starts(starts, Tuple.to_list(tensor.shape), Tuple.to_list(slice.shape))
    put(out, Native.put_slice(type, starts, operand(tensor), operand(slice)))
  end

  @doc false
  def gather(%{shape: shape} = out, tensor, indices, opts),
    do: put(out, Native.gather(shape, opts[:axes], operand(tensor), operand(indices)))

  for op <- [:indexed_add, :indexed_put] do
    @doc false
    def unquote(op)(%{type: type} = out, target, indices, updates, opts) do
      {target, indices, updates} = {operand(target), operand(indices), operand(updates)}
      put(out, Native.indexed(unquote(op), type, opts[:axes], target, indices, updates))
    end
  end

  @doc false
  def take(%{shape: shape} = out, tensor, indices, opts),
    do: put(out, Native.take(shape, opts[:axis], operand(tensor), operand(indices)))

  @doc false
  def take_along_axis(out, tensor, indices, opts),
    do: put(out, Native.take_along_axis(opts[:axis], operand(tensor), operand(indices)))

  @doc false
  def sort(out, tensor, opts),
    do: put(out, Native.sort(opts[:axis], opts[:direction] == :desc, operand(tensor)))

  @doc false
  def argsort(%{type: type} = out, tensor, opts),
    do: put(out, Native.argsort(type, opts[:axis], opts[:direction] == :desc, operand(tensor)))

  @doc false
  def top_k({values, %{type: type, shape: shape} = indices}, tensor, _opts) do
    indices = put(indices, Native.top_k(type, shape, operand(tensor)))
    {take_along_axis(values, tensor, indices, axis: tuple_size(shape) - 1), indices}
  end

  ## Reductions and products

  for op <- [:sum, :product, :reduce_max, :reduce_min, :all, :any] do
    @doc false
    def unquote(op)(%{type: type, shape: shape} = out, tensor, opts) do
      put(out, Native.reduce(unquote(op), type, shape, opts[:axes], operand(tensor)))
    end
  end

  for {op, reduction} <- [argmax: :reduce_max, argmin: :reduce_min] do
    @doc false
    def unquote(op)(%{type: type, shape: shape} = out, tensor, opts) do
      tie_break = opts[:tie_break] || :low

      put(
        out,
        Native.arg_reduce(
          unquote(reduction),
          type,
          shape,
          opts[:axis],
          tie_break,
          operand(tensor)
        )
      )
    end
  end

  @doc false
  def dot(%{type: type, shape: shape} = out, left, axes, batch, right, right_axes, right_batch) do
    left = {operand(left), axes, batch}
    right = {operand(right), right_axes, right_batch}
    put(out, Native.dot(type, shape, left, right))
  end

  ## Windows and convolution

  for op <- [:window_sum, :window_product, :window_max, :window_min] do
    @doc false
    def unquote(op)(%{type: type, shape: shape} = out, tensor, window, opts) do
      over = {window, opts[:padding], opts[:strides], opts[:window_dilations]}
      put(out, Native.window(unquote(op), type, shape, over, operand(tensor)))
    end
  end

  for op <- [:window_scatter_max, :window_scatter_min] do
    @doc false
    def unquote(op)(%{type: type} = out, tensor, source, init, window, opts) do
      over = {window, opts[:padding], opts[:strides], List.duplicate(1, tuple_size(window))}
      [tensor, source, init] = Enum.map([tensor, source, init], &operand/1)
      put(out, Native.window_scatter(unquote(op), type, over, tensor, source, init))
    end
  end

  @doc false
  def conv(%{type: type, shape: shape} = out, tensor, kernel, opts) do
    options =
      {opts[:strides], opts[:padding], opts[:input_dilation], opts[:kernel_dilation],
       {opts[:feature_group_size], opts[:batch_group_size]},
       {opts[:input_permutation], opts[:kernel_permutation], opts[:output_permutation]}}

    put(out, Native.conv(type, shape, operand(tensor), operand(kernel), options))
  end

  ## Fourier transforms and linear algebra

  for op <- [:fft, :ifft] do
    @doc false
    def unquote(op)(out, tensor, opts),
      do: put(out, Fourier.transform(unquote(op), out, operand(tensor), opts))
  end

  for op <- [:fft2, :ifft2] do
    @doc false
    def unquote(op)(out, tensor, opts),
      do: put(out, Fourier.transform2(unquote(op), out, operand(tensor), opts))
  end

  @doc false
  def triangular_solve(out, a, b, opts),
    do: put(out, LinAlg.triangular_solve(out, operand(a), operand(b), opts))

  # Those below are callbacks up to Nx 0.9, and blocks after.

  @doc false
  def solve(out, a, b), do: put(out, LinAlg.solve(:qr, out, operand(a), operand(b)))

  @doc false
  def cholesky(out, tensor), do: factor(:cholesky, out, tensor, [])

  @doc false
  def determinant(out, tensor) do
    wide = factor(:determinant, %{out | type: LinAlg.wide(out.type)}, tensor, [])
    as_type(out, wide)
  end

  for op <- [:lu, :qr, :eigh, :svd] do
    @doc false
    def unquote(op)(outs, tensor, opts),
      do: factor(unquote(:"#{op}_0_9"), outs, tensor, opts)
  end

  defp factor(op, outs, tensor, opts) when is_tuple(outs) do
    outs = Tuple.to_list(outs)
    data = LinAlg.factor(op, outs, operand(tensor), opts)
    outs |> Enum.zip_with(data, &put/2) |> List.to_tuple()
  end

  defp factor(op, out, tensor, opts) do
    [data] = LinAlg.factor(op, [out], operand(tensor), opts)
    put(out, data)
  end

  ## Folds with a function

  @doc false
  def reduce(out, tensor, acc, opts, fun), do: put(out, Fold.reduce(out, tensor, acc, opts, fun))

  @doc false
  def window_reduce(out, tensor, acc, window, opts, fun),
    do: put(out, Fold.window_reduce(out, tensor, acc, window, opts, fun))

  ## Compound operations: optional callbacks of Nx 0.9, blocks of 0.12 and later

  for op <- [:cumulative_sum, :cumulative_product, :cumulative_min, :cumulative_max] do
    @doc false
    def unquote(op)(out, tensor, opts),
      do: put(out, Native.cumulative(unquote(op), opts[:axis], !!opts[:reverse], operand(tensor)))
  end

  @doc false
  def all_close(%{shape: shape} = out, left, right, opts) do
    tolerances = {opts[:rtol] * 1.0, opts[:atol] * 1.0, !!opts[:equal_nan]}
    put(out, Native.all_close(shape, tolerances, operand(left), operand(right)))
  end

  @doc false
  def optional(_name, args, fun), do: Default.run(fun, args)

  @doc false
  def block(%{__struct__: Nx.Block.LogicalNot}, out, [tensor], _fun), do: logical_not(out, tensor)

  for {module, op} <- [{Nx.Block.FFT2, :fft2}, {Nx.Block.IFFT2, :ifft2}] do
    def block(%{__struct__: unquote(module)} = struct, out, [tensor], _fun),
      do: put(out, Fourier.transform2(unquote(op), out, operand(tensor), Map.to_list(struct)))
  end

  for {module, op} <- [{Nx.Block.RFFT, :rfft}, {Nx.Block.IRFFT, :irfft}] do
    def block(%{__struct__: unquote(module)} = struct, out, [tensor], _fun),
      do: put(out, Fourier.transform(unquote(op), out, operand(tensor), Map.to_list(struct)))
  end

  def block(%{__struct__: Nx.Block.LinAlg.Solve}, out, [a, b], _fun),
    do: put(out, LinAlg.solve(:lu, out, operand(a), operand(b)))

  for {module, op} <- [
        {Nx.Block.LinAlg.Cholesky, :cholesky},
        {Nx.Block.LinAlg.Determinant, :determinant},
        {Nx.Block.LinAlg.LU, :lu},
        {Nx.Block.LinAlg.QR, :qr},
        {Nx.Block.LinAlg.Eigh, :eigh}
      ] do
    def block(%{__struct__: unquote(module)} = struct, out, [tensor], _fun),
      do: factor(unquote(op), out, tensor, Map.to_list(struct))
  end

  def block(%{__struct__: Nx.Block.LinAlg.SVD, full_matrices?: full?}, outs, [tensor], _fun),
    do: factor(if(full?, do: :svd, else: :thin_svd), outs, tensor, [])

  for {block, op} <- [{Nx.Block.Take, :take}, {Nx.Block.TakeAlongAxis, :take_along_axis}] do
    def block(%{__struct__: unquote(block), axis: axis}, out, [tensor, indices], _fun),
      do: unquote(op)(out, tensor, indices, axis: axis)
  end

  def block(%{__struct__: Nx.Block.TopK, k: k}, out, [tensor], _fun), do: top_k(out, tensor, k: k)
  def block(%{__struct__: Nx.Block.Phase}, out, [tensor], _fun), do: phase(out, tensor)

  def block(%{__struct__: Nx.Block.AllClose, rtol: rtol, atol: atol} = close, out, [a, b], _fun)
      when is_number(rtol) and is_number(atol),
      do: all_close(out, a, b, Map.to_list(close))

  for {module, op} <- [
        {Nx.Block.CumulativeSum, :cumulative_sum},
        {Nx.Block.CumulativeProduct, :cumulative_product},
        {Nx.Block.CumulativeMin, :cumulative_min},
        {Nx.Block.CumulativeMax, :cumulative_max}
      ] do
    def block(%{__struct__: unquote(module)} = cumulative, out, [tensor], _fun),
      do: unquote(op)(out, tensor, Map.to_list(cumulative))
  end

  def block(struct, _out, args, fun), do: Default.run(fun, [struct | args])

  ## What all share

  # Nx has no empty tensors, but computes the shapes of some: there is no way to go on with them.
  defp put(%{shape: shape}, <<>>) do
    raise ArgumentError,
          "a result of shape #{Kernel.inspect(shape)} has no elements, and Nx has no empty tensors"
  end

  defp put(out, data), do: %{out | data: %__MODULE__{state: data}}

  # Of this backend or of Nx.BinaryBackend, which holds data the same way.
  defp operand(%{type: type, shape: shape, data: %{state: state}}), do: {type, shape, state}
end
