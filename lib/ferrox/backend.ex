defmodule Ferrox.Backend do
  @moduledoc since: "0.1.0"
  @moduledoc """
  An `Nx.Backend` that computes with Ferrox's native code, for Nx 0.9.2 and 0.13.1.

  To make it the default backend of an application (in its configuration), of all processes of a
  running system, or of one process:

      config :nx, default_backend: Ferrox.Backend
      Nx.global_default_backend(Ferrox.Backend)
      Nx.default_backend(Ferrox.Backend)

  The data of a tensor are an ordinary binary with the layout of `Nx.BinaryBackend`. So transfers
  between the two backends copy nothing, and the operands of one operation may be on either of
  them.

  The results are those of `Nx.BinaryBackend`, with these deliberate differences:

    1. Floats follow IEEE 754 where Elixir's arithmetic raises (an overflow gives an infinity, a
       division by zero an infinity or NaN), and where `Nx.BinaryBackend` has rules of its own for
       infinities and NaN: the sign of a number divided by an infinity; `atan2`, `phase` and `tanh`
       of infinities; `pow` with an infinite or NaN operand; `abs` of complex numbers with a NaN.
    2. Results of type bf16, f8, f16 and f8_e4m3fn are rounded once, to nearest with ties to even.
       `Nx.BinaryBackend` truncates bf16 and f8, rounds f16 twice, and rounds ties of f8_e4m3fn
       differently.
    3. `Nx.sign/1` of NaN is NaN, and of a negative infinity -1; on `Nx.BinaryBackend` both are 1.
       `Nx.clip/3` keeps NaN; `Nx.BinaryBackend` replaces it by the lower bound.
    4. Functions have their accurate value where the formula of Nx or of the `complex` package loses
       digits: `Nx.expm1/1`, `Nx.log1p/1`, `Nx.cbrt/1` and `Nx.erf_inv/1` of f64, and all functions
       of complex numbers, whose special values and branch cuts are those of Annex G of the C
       standard. Other functions may differ in the last place; `exp`, `log`, `pow`, `sin` and
       `cos` of f64 have the results of glibc, as on `Nx.BinaryBackend` where Erlang runs on it. A zero
       keeps its sign in odd functions and in `Nx.round/1`. `Nx.add/2` and the other arithmetic
       operations round once where an integer meets f32 or a narrower float; `Nx.BinaryBackend` also
       rounds to f64 in between.
    5. An integer division by zero, a negative exponent of integers and a negative shift raise an
       `ArgumentError` that says so. `Nx.sign/1` of complex numbers and `Nx.atan2/2` of numbers with
       an imaginary part also raise an `ArgumentError`.
    6. The subnormal numbers and zeros of f8 have their value; `Nx.BinaryBackend` misreads the
       subnormal numbers, and up to Nx 0.9 also the zeros.
    7. Complex zeros are false in `Nx.all/2` and `Nx.select/3`; on `Nx.BinaryBackend` they are true.
    8. Sums, products, `Nx.dot/2`, `Nx.conv/3` and window operations of floats may combine the
       elements in another order; windows are reduced along their last axis first. Large matrix
       products and convolutions of f32 and narrower types are computed in f32. If one part of a
       complex element is not finite, the other part of the result may be NaN. Cumulative sums and
       products are accumulated from left to right in 64 bits, and each element is rounded once; Nx
       combines pairs in the type of the tensor. Cumulative sums of f64 also carry along the
       rounding error. Of zeros of either sign, cumulative minima and maxima keep the first.
    9. `Nx.window_scatter_max/5` and `Nx.window_scatter_min/5` compare elements and add values
       exactly; `Nx.BinaryBackend` converts both to 32-bit numbers. With padding, values are put
       where Nx 0.13 puts them, also with Nx 0.9. Windows and kernels that are larger than the
       padded tensor raise an `ArgumentError`.
    10. `Nx.all_close/3` compares exact distances of integers, which wrap around on
        `Nx.BinaryBackend`, and distances of floats in f64.
    11. `Nx.window_reduce/5` calls its function with scalar tensors, as the documentation of Nx says;
        `Nx.BinaryBackend` calls it with numbers. The accumulator, which is also the value of the
        padding, must be a value of the tensor's type.
    12. These operations work on types of 2 and 4 bits, and fail on `Nx.BinaryBackend`: counting
        leading zeros, and the cumulative operations.
    13. `Nx.pad/3` gives the type that the documentation of Nx says: the types of the tensor and of
        the padding value, merged. `Nx.BinaryBackend` keeps the tensor's type. A negative padding
        may remove more elements than an axis has, if the padding at the other end makes up for
        them; `Nx.BinaryBackend` raises. A result without elements raises an `ArgumentError`, as
        does `Nx.irfft/2` of one element without a `:length`.
    14. If the updates of `Nx.indexed_add/4` or `Nx.indexed_put/4` are smaller than two or more axes
        of the target, they apply to the start of each of these axes; `Nx.BinaryBackend` applies
        them to the same number of consecutive elements. The same goes for vectorized tensors with
        `:axes`, whose updates `Nx.BinaryBackend` applies to one element each.
    15. Fourier transforms are right along every axis and for length one; on `Nx.BinaryBackend`
        transforms of real tensors of length one fail, and the axes before the last two are mixed
        up. Transforms along two axes round once.
    16. Factorizations have the accuracy and the range of LAPACK, whatever `:eps` and `:max_iter`
        are. A value becomes zero only if it can't be told from the rounding errors of its own row
        and column, singular values don't lose half of their digits, and the vectors that belong to
        zero singular values are orthonormal. Determinants of two and three rows are accurate, and
        larger ones are those of Gaussian elimination with pivoting; no intermediate value overflows
        or underflows. The signs of eigenvectors and singular vectors are such that the largest
        component of each eigenvector, or right singular vector, is positive.
        Well-conditioned f32 matrices that are no larger than those in the documentation of Nx
        (for eigenvectors and singular vectors: up to 3, and up to 4 along the longer side) are
        computed natively by the same steps as `Nx.LinAlg` of the release in use, and have its
        digits and signs. So are thin decompositions of integer matrices with two columns, whose
        left vectors are then orthonormal up to 192 roundings.
    17. `Nx.LinAlg.eigh/2` takes the Hermitian part of its argument. The eigenvalues, singular
        values and QR factors of a matrix that isn't finite are NaN.
    18. `Nx.Random.normal/4` of type bf16 gives a negative infinity once in about 128 numbers. The
        reason: the smallest argument that Nx passes to `Nx.erf_inv/1` is the f16 value next to -1,
        which rounds to -1 in bf16, while `Nx.BinaryBackend` truncates it to a number above -1. To
        avoid it, draw f32 numbers and round them:
        `Nx.Random.normal(key, 0.0, 1.0, type: :f32)`, then `Nx.as_type(tensor, :bf16)`.

  Reductions with an Elixir function call the function once for each element. Pointers are refused,
  as on `Nx.BinaryBackend`: the VM moves and frees the data of a tensor as it sees fit.

  ## Other nodes

  A tensor can be sent to another node like any other term, but a node without Ferrox has no
  `Ferrox.Backend` module, and can't use the tensor: even `inspect/2` fails. Send the result of
  `Nx.backend_transfer(tensor, Nx.BinaryBackend)` instead, which copies nothing. A serving that
  answers requests of other nodes can do so in the function given to
  `Nx.Serving.distributed_postprocessing/2`. See the guide on the backend.

  ## Inspection

  Inspected tensors show `Ferrox.Backend`. To turn this off, configure at compile time:

      config :ferrox, :add_backend_on_inspect, false

  """

  import Kernel, except: [inspect: 2]

  alias Ferrox.Backend.{Default, Fold, Fourier, LinAlg, Operations}
  alias Ferrox.{Bits, Native, Numbers}

  # Ferrox compiles without Nx, and the releases of Nx have different callbacks. So the functions
  # below have no `@impl true`: the compiler would warn wherever a function isn't a callback.
  if Code.ensure_loaded?(Nx.Backend), do: @behaviour(Nx.Backend)

  @enforce_keys [:state]
  defstruct [:state]

  @typedoc "The data of a tensor, as `Nx.to_binary/1` returns them."
  @type t :: %__MODULE__{state: bitstring}

  @typep tensor :: Nx.Tensor.t()
  @typep number_term :: Numbers.number_term()
  @typep axis :: non_neg_integer

  @doc false
  @spec init(keyword) :: []
  def init([]), do: []

  def init(opts) do
    raise ArgumentError, "Ferrox.Backend takes no options, got: #{Kernel.inspect(opts)}"
  end

  ## Creation

  @doc false
  @spec constant(tensor, number_term, keyword) :: tensor
  def constant(%{type: type, shape: shape} = out, number, _opts) do
    scalar = Numbers.constant(number, type)
    put(out, if(shape == {}, do: scalar, else: Native.broadcast(shape, [], {type, {}, scalar})))
  end

  @doc false
  @spec from_binary(tensor, binary, keyword) :: tensor
  def from_binary(out, binary, _opts), do: put(out, binary)

  @doc false
  @spec iota(tensor, axis | nil, keyword) :: tensor
  def iota(%{type: type, shape: shape} = out, axis, _opts),
    do: put(out, Native.iota(type, shape, axis))

  @doc false
  @spec eye(tensor, keyword) :: tensor
  def eye(%{type: type, shape: shape} = out, _opts), do: put(out, Native.eye(type, shape))

  ## Transfer and reading

  @doc false
  @spec backend_copy(tensor, module, keyword) :: tensor
  def backend_copy(tensor, backend, _opts) when backend in [__MODULE__, Nx.Tensor], do: tensor

  def backend_copy(%{data: %{state: state}} = tensor, backend, opts),
    do: backend.from_binary(tensor, state, opts)

  @doc false
  @spec backend_transfer(tensor, module, keyword) :: tensor
  def backend_transfer(tensor, backend, opts), do: backend_copy(tensor, backend, opts)

  @no_pointers_message "Ferrox.Backend has no pointers: the data of a tensor are a binary that the VM " <>
                         "moves and frees as it sees fit, so that no address of it stays valid, and memory " <>
                         "at an address from elsewhere can't be checked; use Nx.to_binary/1 and Nx.from_binary/3"

  @doc false
  @spec from_pointer(term, term, term, term, term) :: no_return
  def from_pointer(_pointer, _type, _shape, _backend_opts, _opts),
    do: raise(ArgumentError, @no_pointers_message)

  @doc false
  @spec to_pointer(term, term) :: no_return
  def to_pointer(_tensor, _opts), do: raise(ArgumentError, @no_pointers_message)

  # The garbage collector frees the data; there is nothing to free by hand.
  @doc false
  @spec backend_deallocate(tensor) :: :ok
  def backend_deallocate(_tensor), do: :ok

  @doc false
  @spec to_binary(tensor, non_neg_integer) :: bitstring
  def to_binary(%{type: {_, bits}, data: %{state: state}}, limit) do
    if limit * bits == bit_size(state), do: state, else: Bits.slice(state, 0, limit * bits)
  end

  @doc false
  @spec to_batched(tensor, tensor, keyword) :: Enumerable.t()
  def to_batched(%{shape: batch_shape, type: {_, bits}} = out, tensor, opts) do
    batch_bits = Native.size(batch_shape) * bits
    tensor.data.state |> Bits.batches(batch_bits, opts[:leftover]) |> Stream.map(&put(out, &1))
  end

  @doc false
  @spec inspect(tensor, Inspect.Opts.t()) :: Inspect.Algebra.t()
  def inspect(%{shape: shape} = tensor, opts) do
    size = Native.size(shape)
    limit = if opts.limit == :infinity, do: size, else: min(opts.limit + 1, size)
    add_backend_name(apply(Nx.Backend, :inspect, [tensor, to_binary(tensor, limit), opts]))
  end

  if Application.compile_env(:ferrox, :add_backend_on_inspect, true) do
    defp add_backend_name(document),
      do: Inspect.Algebra.concat(["Ferrox.Backend", Inspect.Algebra.line(), document])
  else
    defp add_backend_name(document), do: document
  end

  ## Type and shape

  @doc false
  @spec as_type(tensor, tensor) :: tensor
  def as_type(%{type: type} = out, %{type: type} = tensor), do: put(out, tensor.data.state)
  def as_type(%{type: type} = out, tensor), do: put(out, Native.as_type(type, operand(tensor)))

  # These operations keep the data, and change only the type or shape of the tensor.
  for {name, arity} <- [bitcast: 2, reshape: 2, squeeze: 3] do
    rest = Macro.generate_arguments(arity - 2, __MODULE__)

    @doc false
    @spec unquote(name)(
            tensor,
            tensor,
            unquote_splicing(List.duplicate(quote(do: term), arity - 2))
          ) ::
            tensor
    def unquote(name)(out, tensor, unquote_splicing(rest)) do
      _ = unquote(rest)
      put(out, tensor.data.state)
    end
  end

  @doc false
  @spec broadcast(tensor, tensor, tuple, [axis]) :: tensor
  def broadcast(out, tensor, shape, axes),
    do: put(out, Native.broadcast(shape, axes, operand(tensor)))

  @doc false
  @spec transpose(tensor, tensor, [axis]) :: tensor
  def transpose(%{shape: shape} = out, tensor, axes),
    do: put(out, Native.transpose(shape, axes, operand(tensor)))

  @doc false
  @spec reverse(tensor, tensor, [axis]) :: tensor
  def reverse(%{shape: shape} = out, tensor, axes),
    do: put(out, Native.reverse(shape, axes, operand(tensor)))

  @doc false
  @spec slice(tensor, tensor, [integer | tensor], [pos_integer], [pos_integer]) :: tensor
  def slice(%{shape: shape} = out, tensor, starts, lengths, strides) do
    starts = clamp_starts(starts, Tuple.to_list(tensor.shape), lengths)
    put(out, Native.slice(shape, starts, lengths, strides, operand(tensor)))
  end

  # The starts, moved so that the slice lies within the tensor.
  defp clamp_starts([start | starts], [size | sizes], [length | lengths]) do
    start = start |> start_to_integer() |> max(0) |> min(size - length)
    [start | clamp_starts(starts, sizes, lengths)]
  end

  defp clamp_starts([], [], []), do: []

  # The start of a slice is an integer or a scalar tensor.
  defp start_to_integer(integer) when is_integer(integer), do: integer

  defp start_to_integer(%{type: type, data: %{state: state}}),
    do: hd(Numbers.decode(state, type, 1))

  @doc false
  @spec concatenate(tensor, [tensor], axis) :: tensor
  def concatenate(%{type: type, shape: shape} = out, tensors, axis) do
    put(out, Native.concatenate(type, shape, axis, Enum.map(tensors, &cast(&1, type))))
  end

  @doc false
  @spec stack(tensor, [tensor], axis) :: tensor
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

  for op <- Operations.binary() do
    @doc false
    @spec unquote(op)(tensor, tensor, tensor) :: tensor
    def unquote(op)(%{type: type, shape: shape} = out, left, right),
      do: put(out, Native.binary(unquote(op), type, shape, operand(left), operand(right)))
  end

  for op <- Operations.unary() do
    @doc false
    @spec unquote(op)(tensor, tensor) :: tensor
    def unquote(op)(%{type: type} = out, tensor),
      do: put(out, Native.unary(unquote(op), type, operand(tensor)))
  end

  @doc false
  @spec select(tensor, tensor, tensor, tensor) :: tensor
  def select(%{type: type, shape: shape} = out, pred, on_true, on_false) do
    put(out, Native.select(type, shape, operand(pred), operand(on_true), operand(on_false)))
  end

  @doc false
  @spec clip(tensor, tensor, tensor, tensor) :: tensor
  def clip(%{type: type, shape: shape} = out, tensor, min, max),
    do: put(out, Native.clip(type, shape, operand(tensor), operand(min), operand(max)))

  ## Indices, sorts and padding

  @doc false
  @spec pad(tensor, tensor, tensor, [{integer, integer, non_neg_integer}]) :: tensor
  def pad(%{type: type, shape: shape} = out, tensor, value, paddings) do
    if Enum.any?(Tuple.to_list(shape), &(&1 < 1)) do
      raise ArgumentError,
            "pad: nothing is left of a tensor of shape #{Kernel.inspect(tensor.shape)} with the " <>
              "padding #{Kernel.inspect(paddings)}, which gives the shape #{Kernel.inspect(shape)}"
    end

    put(out, Native.pad(type, shape, paddings, operand(tensor), operand(value)))
  end

  @doc false
  @spec put_slice(tensor, tensor, [integer | tensor], tensor) :: tensor
  def put_slice(%{type: type} = out, tensor, starts, slice) do
    starts = clamp_starts(starts, Tuple.to_list(tensor.shape), Tuple.to_list(slice.shape))
    put(out, Native.put_slice(type, starts, operand(tensor), operand(slice)))
  end

  @doc false
  @spec gather(tensor, tensor, tensor, keyword) :: tensor
  def gather(%{shape: shape} = out, tensor, indices, opts),
    do: put(out, Native.gather(shape, opts[:axes], operand(tensor), operand(indices)))

  for op <- [:indexed_add, :indexed_put] do
    @doc false
    @spec unquote(op)(tensor, tensor, tensor, tensor, keyword) :: tensor
    def unquote(op)(%{type: type} = out, target, indices, updates, opts) do
      axes = opts[:axes]
      shape = Operations.updates_shape(updates.shape, indices.shape, target.shape, axes)
      {target, indices, updates} = {operand(target), operand(indices), operand(updates)}
      updates = put_elem(updates, 1, shape)
      put(out, Native.indexed(unquote(op), type, axes, target, indices, updates))
    end
  end

  @doc false
  @spec take(tensor, tensor, tensor, keyword) :: tensor
  def take(%{shape: shape} = out, tensor, indices, opts),
    do: put(out, Native.take(shape, opts[:axis], operand(tensor), operand(indices)))

  @doc false
  @spec take_along_axis(tensor, tensor, tensor, keyword) :: tensor
  def take_along_axis(out, tensor, indices, opts),
    do: put(out, Native.take_along_axis(opts[:axis], operand(tensor), operand(indices)))

  @doc false
  @spec sort(tensor, tensor, keyword) :: tensor
  def sort(out, tensor, opts),
    do: put(out, Native.sort(opts[:axis], opts[:direction] == :desc, operand(tensor)))

  @doc false
  @spec argsort(tensor, tensor, keyword) :: tensor
  def argsort(%{type: type} = out, tensor, opts),
    do: put(out, Native.argsort(type, opts[:axis], opts[:direction] == :desc, operand(tensor)))

  @doc false
  @spec top_k({tensor, tensor}, tensor, keyword) :: {tensor, tensor}
  def top_k({values, %{type: type, shape: shape} = indices}, tensor, _opts) do
    indices = put(indices, Native.top_k(type, shape, operand(tensor)))
    {take_along_axis(values, tensor, indices, axis: tuple_size(shape) - 1), indices}
  end

  ## Reductions and products

  for op <- [:sum, :product, :reduce_max, :reduce_min, :all, :any] do
    @doc false
    @spec unquote(op)(tensor, tensor, keyword) :: tensor
    def unquote(op)(%{type: type, shape: shape} = out, tensor, opts) do
      put(out, Native.reduce(unquote(op), type, shape, opts[:axes], operand(tensor)))
    end
  end

  for {op, reduction} <- [argmax: :reduce_max, argmin: :reduce_min] do
    @doc false
    @spec unquote(op)(tensor, tensor, keyword) :: tensor
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
  @spec dot(tensor, tensor, [axis], [axis], tensor, [axis], [axis]) :: tensor
  def dot(
        %{type: type, shape: shape} = out,
        left,
        left_axes,
        left_batch,
        right,
        right_axes,
        right_batch
      ) do
    left = {operand(left), left_axes, left_batch}
    right = {operand(right), right_axes, right_batch}
    put(out, Native.dot(type, shape, left, right))
  end

  ## Windows and convolution

  for op <- [:window_sum, :window_product, :window_max, :window_min] do
    @doc false
    @spec unquote(op)(tensor, tensor, tuple, keyword) :: tensor
    def unquote(op)(%{type: type, shape: shape} = out, tensor, window, opts) do
      windows = Operations.windows(window, opts)
      put(out, Native.window(unquote(op), type, shape, windows, operand(tensor)))
    end
  end

  for op <- [:window_scatter_max, :window_scatter_min] do
    @doc false
    @spec unquote(op)(tensor, tensor, tensor, tensor, tuple, keyword) :: tensor
    def unquote(op)(%{type: type} = out, tensor, source, init, window, opts) do
      windows = Operations.windows(window, opts)
      [tensor, source, init] = Enum.map([tensor, source, init], &operand/1)
      put(out, Native.window_scatter(unquote(op), type, windows, tensor, source, init))
    end
  end

  @doc false
  @spec conv(tensor, tensor, tensor, keyword) :: tensor
  def conv(%{type: type, shape: shape} = out, tensor, kernel, opts) do
    options = Operations.conv_options(opts)
    put(out, Native.conv(type, shape, operand(tensor), operand(kernel), options))
  end

  ## Fourier transforms and linear algebra

  for op <- [:fft, :ifft] do
    @doc false
    @spec unquote(op)(tensor, tensor, keyword) :: tensor
    def unquote(op)(out, tensor, opts),
      do: put(out, Fourier.transform(unquote(op), out, operand(tensor), opts))
  end

  for op <- [:fft2, :ifft2] do
    @doc false
    @spec unquote(op)(tensor, tensor, keyword) :: tensor
    def unquote(op)(out, tensor, opts),
      do: put(out, Fourier.transform2(unquote(op), out, operand(tensor), opts))
  end

  @doc false
  @spec triangular_solve(tensor, tensor, tensor, keyword) :: tensor
  def triangular_solve(out, a, b, opts),
    do: put(out, LinAlg.triangular_solve(out, operand(a), operand(b), opts))

  # The factorizations and solve/3 are callbacks up to Nx 0.11, and blocks since Nx 0.12. The
  # callbacks give the results of Nx 0.9.

  @doc false
  @spec solve(tensor, tensor, tensor) :: tensor
  def solve(out, a, b), do: put(out, LinAlg.solve(:qr, out, operand(a), operand(b)))

  @doc false
  @spec cholesky(tensor, tensor) :: tensor
  def cholesky(out, tensor), do: factor(:cholesky, out, tensor, [])

  @doc false
  @spec determinant(tensor, tensor) :: tensor
  def determinant(out, tensor) do
    wide_out = %{out | type: Numbers.wide(out.type)}
    as_type(out, factor(:determinant, wide_out, tensor, []))
  end

  for op <- [:lu, :qr, :eigh, :svd] do
    @doc false
    @spec unquote(op)(tuple, tensor, keyword) :: tuple
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
  @spec reduce(tensor, tensor, term, keyword, fun) :: tensor
  def reduce(out, tensor, acc, opts, fun), do: put(out, Fold.reduce(out, tensor, acc, opts, fun))

  @doc false
  @spec window_reduce(tensor, tensor, term, tuple, keyword, fun) :: tensor
  def window_reduce(out, tensor, acc, window, opts, fun),
    do: put(out, Fold.window_reduce(out, tensor, acc, window, opts, fun))

  ## Compound operations: optional callbacks up to Nx 0.11, blocks since Nx 0.12

  for op <- [:cumulative_sum, :cumulative_product, :cumulative_min, :cumulative_max] do
    @doc false
    @spec unquote(op)(tensor, tensor, keyword) :: tensor
    def unquote(op)(out, tensor, opts),
      do: put(out, Native.cumulative(unquote(op), opts[:axis], !!opts[:reverse], operand(tensor)))
  end

  @doc false
  @spec all_close(tensor, tensor, tensor, keyword) :: tensor
  def all_close(%{shape: shape} = out, left, right, opts) do
    tolerances = {opts[:rtol] * 1.0, opts[:atol] * 1.0, !!opts[:equal_nan]}
    put(out, Native.all_close(shape, tolerances, operand(left), operand(right)))
  end

  @doc false
  @spec optional(atom, [term], fun) :: term
  def optional(_name, args, fun), do: Default.run(fun, args)

  @doc false
  @spec block(struct, tensor | tuple, [term], fun) :: term
  def block(%{__struct__: Nx.Block.LogicalNot}, out, [tensor], _fun), do: logical_not(out, tensor)

  for {module, op} <- [{Nx.Block.FFT2, :fft2}, {Nx.Block.IFFT2, :ifft2}] do
    def block(%{__struct__: unquote(module)} = block, out, [tensor], _fun),
      do: put(out, Fourier.transform2(unquote(op), out, operand(tensor), Map.to_list(block)))
  end

  for {module, op} <- [{Nx.Block.RFFT, :rfft}, {Nx.Block.IRFFT, :irfft}] do
    def block(%{__struct__: unquote(module)} = block, out, [tensor], _fun),
      do: put(out, Fourier.transform(unquote(op), out, operand(tensor), Map.to_list(block)))
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
    def block(%{__struct__: unquote(module)} = block, out, [tensor], _fun),
      do: factor(unquote(op), out, tensor, Map.to_list(block))
  end

  def block(%{__struct__: Nx.Block.LinAlg.SVD, full_matrices?: full?}, outs, [tensor], _fun),
    do: factor(if(full?, do: :svd, else: :thin_svd), outs, tensor, [])

  for {block, op} <- [{Nx.Block.Take, :take}, {Nx.Block.TakeAlongAxis, :take_along_axis}] do
    def block(%{__struct__: unquote(block), axis: axis}, out, [tensor, indices], _fun),
      do: unquote(op)(out, tensor, indices, axis: axis)
  end

  def block(%{__struct__: Nx.Block.TopK, k: k}, out, [tensor], _fun), do: top_k(out, tensor, k: k)
  def block(%{__struct__: Nx.Block.Phase}, out, [tensor], _fun), do: phase(out, tensor)

  def block(%{__struct__: Nx.Block.AllClose, rtol: rtol, atol: atol} = block, out, [a, b], _fun)
      when is_number(rtol) and is_number(atol),
      do: all_close(out, a, b, Map.to_list(block))

  for {module, op} <- [
        {Nx.Block.CumulativeSum, :cumulative_sum},
        {Nx.Block.CumulativeProduct, :cumulative_product},
        {Nx.Block.CumulativeMin, :cumulative_min},
        {Nx.Block.CumulativeMax, :cumulative_max}
      ] do
    def block(%{__struct__: unquote(module)} = block, out, [tensor], _fun),
      do: unquote(op)(out, tensor, Map.to_list(block))
  end

  def block(block, _out, args, fun), do: Default.run(fun, [block | args])

  ## Shared by all operations

  # The tensor with these data. Raises where there are none: Nx computes shapes without elements in
  # some operations, but has no empty tensors.
  defp put(%{shape: shape}, <<>>) do
    raise ArgumentError,
          "a result of shape #{Kernel.inspect(shape)} has no elements, and Nx has no empty tensors"
  end

  defp put(out, data), do: %{out | data: %__MODULE__{state: data}}

  # A tensor as an operand of the native library. The tensor may be on this backend or on
  # Nx.BinaryBackend, whose struct has the same field with the same data.
  defp operand(%{type: type, shape: shape, data: %{state: state}}), do: {type, shape, state}
end
