if Code.ensure_loaded?(Nx) do
  defmodule Ferrox.Differences do
    @moduledoc """
    Why an element of a result on `Ferrox.Backend` may differ from that on
    `Nx.BinaryBackend`: one of `kept/0`, or another term if there is no good reason.

    What the element should be is computed here, by `Ferrox.Oracle` or by
    BinaryBackend in 64 bits from operands that the oracle has decoded.
    """

    import Ferrox.Bits, only: [bound_size: 1]

    alias Ferrox.{Accurate, Oracle}

    # The differences that are kept on purpose.
    @kept %{
      rounded:
        "bf16, f8 and f16 are rounded once, to nearest; there they are truncated or rounded twice",
      f8_read: "the zeros (0.9.2) and subnormals of f8, which BinaryBackend misreads",
      ieee:
        "IEEE 754 where Elixir's arithmetic raises, or rules of its own for infinities and NaN",
      complex:
        "complex arithmetic where Elixir's raises, loses a sign, or divides by an underflow",
      complex_truth:
        "complex zeros are false in all/1 and select/3; in BinaryBackend they are true",
      complex_equal: "numbers equal complex ones of no imaginary part; not so in 0.9.2",
      last_place:
        "one unit in the last place, of a function of f32 or a narrower type, or of atan2 and phase",
      near_zero: "expm1 and log1p of f32 and narrower types are accurate near zero",
      accurate: "the accurate value where a formula of Nx or Complex loses digits or a sign",
      rounded_once: "integers beside f32 and narrower floats, with one rounding",
      accumulated: "sums and products in another order or precision, within its error bound",
      nan_kept: "clip keeps NaN; there it becomes the lower bound",
      scattered:
        "window scatters compare and add up exactly; there as 32-bit numbers, one by one",
      zero_sign: "which of two zeros is the less or the greater",
      narrow_bits: "of 2 and 4 bits what BinaryBackend can't count or concatenate",
      closer: "all_close compares exact distances; there they are rounded or wrap around",
      refused: "ArgumentError for complex operands of atan2 and sign"
    }

    @narrow [{:f, 8}, {:f8_e4m3fn, 8}, {:bf, 16}, {:f, 16}]

    @transcendental [:exp, :expm1, :log, :log1p, :sigmoid, :sin, :cos, :tan, :tanh, :rsqrt] ++
                      [:asin, :acos, :atan, :sinh, :cosh, :asinh, :acosh, :atanh, :cbrt] ++
                      [:erf, :erfc, :erf_inv]

    # What isn't computed by the formula of Nx or Complex.
    @accurate [:sqrt, :abs, :round, :pow] ++ @transcendental
    @arithmetic [:add, :subtract, :multiply, :divide, :remainder]

    @doc "The differences that are kept on purpose, with their reasons."
    @spec kept() :: %{atom => String.t()}
    def kept, do: @kept

    @doc "The functions that are not correctly rounded."
    @spec transcendental() :: [atom]
    def transcendental, do: @transcendental

    @doc "What BinaryBackend gives for one element, or the error it raises."
    def element(op, type, operands) do
      apply(Nx.BinaryBackend, op, [%{tensor({:u, 8}, {}, nil) | type: type} | operands]).data.state
    rescue
      error -> error
    end

    # Why an element may differ from BinaryBackend's. `rounded` is what that gives
    # in 64 bits for operands decoded here, rounded here.
    @doc "Why an element of an elementwise operation differs; `direct` is BinaryBackend's."
    def explain(:clip, {kind, _} = type, types, values, direct, got) do
      if :nan in values and kind not in [:s, :u] and Oracle.decode(got, type) == [:nan],
        do: :nan_kept,
        else: explain_element(:clip, type, types, values, direct, got)
    end

    def explain(:as_type, type, [from], [value], direct, got),
      do: converted(value, from, type, direct, got)

    def explain(:select, type, [pred_type, left, right], [pred, on_true, on_false], direct, got) do
      {value, from} = if true?(pred), do: {on_true, left}, else: {on_false, right}

      case converted(value, from, type, direct, got) do
        :wrongly_converted -> :wrongly_converted
        _ when pred == {0, 0} -> :complex_truth
        _ when pred_type == {:f, 8} -> :f8_read
        why -> why
      end
    end

    def explain(:logical_not, type, [from], [value], _direct, got) do
      cond do
        got != Oracle.encode(if(true?(value), do: 0, else: 1), type) -> :wrong
        from == {:f, 8} -> :f8_read
        value == {0, 0} -> :complex_truth
        true -> :differs
      end
    end

    def explain(:count_leading_zeros, {_, bits} = type, _types, [value], _direct, got)
        when bits < 8 do
      <<magnitude::bound_size(bits)>> = <<value::size(bits)>>
      zeros = bits - length(Enum.drop_while(Integer.digits(magnitude, 2), &(&1 == 0)))
      if got == Oracle.encode(zeros, type), do: :narrow_bits, else: {:should_be, zeros}
    end

    def explain(:phase, type, [from], [value], _direct, got) do
      {re, im} = Oracle.parts(value)
      angle = Oracle.encode(Oracle.ieee(:atan2, im, re), type)

      cond do
        from == {:f, 8} and got == angle -> :f8_read
        type in @narrow and got == angle -> :rounded
        got == angle -> :ieee
        Oracle.ulps(got, angle, type) == 1 -> :last_place
        true -> {:should_be, angle}
      end
    end

    def explain(op, type, types, [left, right] = values, direct, got)
        when op in [:equal, :not_equal] and is_tuple(left) != is_tuple(right) do
      {one, other} = {Oracle.parts(left), Oracle.parts(right)}
      equal? = one == other and :nan not in Tuple.to_list(one)

      if got == Oracle.encode(if(equal? == (op == :equal), do: 1, else: 0), {:u, 8}),
        do: :complex_equal,
        else: explain_element(op, type, types, values, direct, got)
    end

    def explain(op, type, types, values, direct, got),
      do: explain_element(op, type, types, values, direct, got)

    defp explain_element(op, type, types, values, direct, got) do
      rounded =
        case element(op, wide(type), Enum.map(values, &scalar/1)) do
          data when is_bitstring(data) ->
            data |> Oracle.decode(wide(type)) |> hd() |> Oracle.encode(type)

          _error ->
            nil
        end

      ieee = ieee(op, type, values)
      off_rounded = rounded && Oracle.ulps(got, rounded, type)
      off_ieee = ieee && Oracle.ulps(got, ieee, type)

      cond do
        off_rounded == 0 and {:f, 8} in types ->
          :f8_read

        off_rounded == 0 and is_bitstring(direct) and type in @narrow ->
          :rounded

        off_rounded == 0 and not is_bitstring(direct) ->
          :ieee

        off_ieee == 0 and (rounded == nil or special?(op, values)) ->
          :ieee

        op in @transcendental and narrower?(type) and off_rounded == 1 ->
          :last_place

        op == :atan2 and (off_rounded || off_ieee) == 1 ->
          :last_place

        op in [:expm1, :log1p] and narrower?(type) and off_ieee in [0, 1] ->
          :near_zero

        match?({:c, _}, type) and complex?(op, values, direct, got, type) ->
          :complex

        op in @accurate and Accurate.good?(op, values, hd(Oracle.decode(got, type)), type) ->
          :accurate

        op in @arithmetic and got == rounded_once(op, values, type) ->
          :rounded_once

        true ->
          %{
            rounded: rounded && Oracle.decode(rounded, type),
            ieee: ieee && Oracle.decode(ieee, type),
            direct: direct
          }
      end
    end

    # An integer and a float as fractions of integers.
    defp rounded_once(op, [a, b], type) when is_integer(a) != is_integer(b) do
      if is_number(a) and is_number(b) and b != 0,
        do: Oracle.encode(Oracle.exact(op, a, b), type)
    end

    defp rounded_once(_op, _values, _type), do: nil

    @doc "Why a value of one type, in another, differs."
    def converted(value, from, type, direct, got) do
      cond do
        not Oracle.same?(got, Oracle.convert(value, type), type) -> :wrongly_converted
        from == {:f, 8} -> :f8_read
        not is_bitstring(direct) -> :ieee
        type in @narrow -> :rounded
        true -> :differs
      end
    end

    # Where BinaryBackend doesn't raise and yet is not IEEE 754.
    defp special?(:divide, [a, b]), do: is_atom(b) or (is_atom(a) and b == 0)
    defp special?(:atan2, [a, b]), do: is_number(a) and is_atom(b)
    defp special?(:pow, [a, b]), do: a == 1 or is_atom(a) or is_atom(b)
    defp special?(:abs, [{a, b}]), do: :nan in [a, b]
    defp special?(op, [a]) when op in [:sign, :tanh], do: is_atom(a)
    defp special?(_, _), do: false

    defp narrower?({kind, bits}), do: {kind, bits} not in [f: 64, c: 128]

    # Where BinaryBackend divides by an underflow or raises, or an operand isn't finite;
    # within a few places of one of the right answers.
    defp complex?(op, values, direct, got, type) do
      (op in [:divide, :rsqrt, :pow] or not is_bitstring(direct) or
         Enum.any?(values, &(not finite?(&1)))) and
        Enum.any?(Oracle.complex(op, values), fn {re, im} = right ->
          re != :unknown and near?(got, right, Oracle.encode({re, im}, type), type)
        end)
    end

    # A part may be off by a few places of the greater one.
    defp near?(got, {re, im}, right, {:c, bits} = type) do
      Oracle.ulps(got, right, type) <= 4 or
        (
          [{x, y}] = Oracle.decode(got, type)
          [{a, b}] = Oracle.decode(right, type)
          greatest = Oracle.modulus({re, im})
          place = if bits == 64, do: 2.0e-7, else: 5.0e-16

          Enum.all?([{x, a}, {y, b}], fn {got, right} ->
            distance = Oracle.ieee(:subtract, got, right)

            got == right or
              (is_number(distance) and
                 (greatest == :infinity or
                    (is_number(greatest) and abs(distance) <= 4 * place * greatest)))
          end)
        )
    end

    defp finite?({re, im}), do: is_number(re) and is_number(im)
    defp finite?(x), do: is_number(x)

    defp wide({:c, _}), do: {:c, 128}
    defp wide({kind, _} = type) when kind in [:s, :u], do: type
    defp wide(_), do: {:f, 64}

    @real [:add, :subtract, :multiply, :divide, :remainder, :pow, :atan2] ++
            [:sqrt, :abs, :ceil, :floor, :negate, :round, :sign] ++ @transcendental

    defp ieee(op, {kind, _} = type, values)
         when kind not in [:s, :u, :c] and op in @real,
         do: Oracle.encode(apply(Oracle, :ieee, [op | values]), type)

    defp ieee(_, _, _), do: nil

    @doc "Why a result of a cumulative operation differs, given the values up to it."
    def accumulated(op, {kind, bits} = type, values, got) when kind in [:s, :u] and bits < 8 do
      total =
        case op do
          :cumulative_sum -> Enum.sum(values)
          :cumulative_product -> Enum.product(values)
          :cumulative_min -> Enum.min(values)
          :cumulative_max -> Enum.max(values)
        end

      if got == Oracle.encode(total, type), do: :narrow_bits, else: {:should_be, total}
    end

    def accumulated(op, type, values, got) do
      case {op, type} do
        {:cumulative_sum, _} ->
          folded(:sum, type, type, values, got)

        {:cumulative_product, _} ->
          folded(:product, type, type, values, got)

        {_, {:f, 8}} ->
          folded(
            if(op == :cumulative_max, do: :reduce_max, else: :reduce_min),
            type,
            type,
            values,
            got
          )

        _ ->
          zeros = Enum.filter(values, &(&1 == 0))
          if zeros != [] and Oracle.decode(got, type) == [0.0], do: :zero_sign, else: :differs
      end
    end

    @doc "The places of the elements up to each along an axis, in the order that they come."
    def prefixes(shape, axis, reverse) do
      inner = shape |> Tuple.to_list() |> Enum.drop(axis + 1) |> Enum.product()
      dim = elem(shape, axis)

      for place <- 0..(Tuple.product(shape) - 1) do
        index = place |> div(inner) |> rem(dim)
        first = place - index * inner
        indices = if reverse, do: (dim - 1)..index//-1, else: 0..index
        for i <- indices, do: first + i * inner
      end
    end

    @doc "Whether values are close to each other, by exact distances and in IEEE 754."
    def close?(a, b, opts) do
      {{ar, ai}, {br, bi}} = {Oracle.parts(a), Oracle.parts(b)}
      special? = fn kinds -> fn parts -> Enum.any?(parts, &(&1 in kinds)) end end
      nan? = special?.([:nan])
      infinite? = special?.([:infinity, :neg_infinity])

      cond do
        nan?.([ar, ai]) and nan?.([br, bi]) ->
          opts[:equal_nan]

        infinite?.([ar, ai]) or infinite?.([br, bi]) ->
          ar == br and ai == bi

        nan?.([ar, ai, br, bi]) ->
          false

        true ->
          distance = Oracle.modulus({minus(ar, br), minus(ai, bi)})
          limit = Oracle.ieee(:multiply, opts[:rtol], Oracle.modulus({1.0 * br, bi}))
          limit = Oracle.ieee(:add, opts[:atol], limit)
          limit == :infinity or (is_number(distance) and distance <= limit)
      end
    end

    defp minus(a, b) when is_integer(a) and is_integer(b), do: 1.0 * (a - b)
    defp minus(a, b), do: Oracle.ieee(:subtract, a, b)

    @doc "Why a reduction of values differs."
    def folded(:sum, _, type, values, got), do: added(Enum.map(values, &[&1]), type, got, 53)
    def folded(:product, _, type, values, got), do: multiplied(values, type, got)

    # BinaryBackend would be right if it read f8 rightly.
    def folded(op, {:f, 8}, type, values, got) do
      wide =
        tensor({:f, 64}, {length(values)}, Enum.map_join(values, &Oracle.encode(&1, {:f, 64})))

      %{type: found, data: %{state: data}} = apply(Nx, op, [wide])
      [value] = Oracle.decode(data, found)

      if Oracle.same?(got, Oracle.convert(value, type), type),
        do: :f8_read,
        else: {:should_be, value}
    end

    def folded(op, {:c, _}, type, values, got) when op in [:all, :any] do
      truths = Enum.map(values, &true?/1)
      truth = if apply(Enum, :"#{op}?", [truths]), do: 1, else: 0
      if got == Oracle.encode(truth, type), do: :complex_truth, else: {:should_be, truth}
    end

    def folded(_, _, _, _, _), do: :differs

    defp added(_terms, {kind, _}, _got, _precision) when kind in [:s, :u], do: :differs

    defp added(terms, {:c, bits}, got, precision) do
      [{re, im}] = Oracle.decode(got, {:c, bits})
      part = {:f, div(bits, 2)}
      {res, ims} = terms |> Enum.map(&products/1) |> Enum.unzip()
      {res, ims} = {Enum.concat(res), Enum.concat(ims)}

      parts =
        for {value, terms} <- [{re, res}, {im, ims}] do
          cond do
            Oracle.sum_of_products?(value, terms, part, precision) -> :right
            value == :nan -> :nan
            true -> :wrong
          end
        end

      # gemm multiplies by a complex one in the end, and zero times an infinity
      # or NaN of one part is NaN in the other.
      spreads? =
        Enum.any?([res, ims], fn terms ->
          is_atom(Oracle.total(terms)) or
            Oracle.sum_of_products?(:infinity, terms, part, precision)
        end)

      if parts == [:right, :right] or (spreads? and :wrong not in parts),
        do: :accumulated,
        else: :sums_up_wrongly
    end

    defp added(terms, type, got, precision) do
      [value] = Oracle.decode(got, type)

      if Oracle.sum_of_products?(value, terms, type, precision),
        do: :accumulated,
        else: :sums_up_wrongly
    end

    # The real products of a complex one, for the real and the imaginary part.
    defp products([z]), do: {[[real(z)]], [[imag(z)]]}

    defp products([x, y]) do
      {[[real(x), real(y)], [Oracle.negate(imag(x)), imag(y)]],
       [[real(x), imag(y)], [imag(x), real(y)]]}
    end

    defp true?({re, im}), do: re != 0 or im != 0
    defp true?(x), do: x != 0

    defp real({re, _}), do: re
    defp real(re), do: re
    defp imag({_, im}), do: im
    defp imag(_), do: 0.0

    # Products of a few factors, none of which comes near the limits of an f64.
    defp multiplied(_values, {kind, _}, _got) when kind in [:s, :u], do: :differs

    defp multiplied(values, {:c, _} = type, got) do
      [{re, im}] = Oracle.decode(got, type)
      {a, b} = Enum.reduce(values, {1.0, 0.0}, &hd(Oracle.complex(:multiply, [&2, &1])))

      near? = fn x, y ->
        x == y or
          (is_number(x) and is_number(y) and abs(x - y) <= 1.0e-6 * Oracle.modulus({a, b}))
      end

      if near?.(re, a) and near?.(im, b), do: :accumulated, else: {:should_be, {a, b}}
    end

    defp multiplied(values, type, got) do
      product = Enum.reduce(values, 1.0, &Oracle.ieee(:multiply, &2, &1))
      margin = if type == {:f, 64}, do: length(values), else: 1

      if Oracle.ulps(got, Oracle.encode(product, type), type) <= margin,
        do: :accumulated,
        else: {:should_be, product}
    end

    @doc "Why a sum of products differs."
    def dotted(terms, {kind, _} = type, got) when kind in [:s, :u] do
      total = terms |> Enum.map(fn [l, r] -> l * r end) |> Enum.sum()
      if got == Oracle.encode(total, type), do: :equal, else: {:should_be, total}
    end

    # gemm multiplies and adds f32 in f32.
    def dotted(terms, type, got),
      do: added(terms, type, got, if(narrower?(type), do: 23, else: 52))

    ## BinaryBackend's

    @doc "A tensor on `Nx.BinaryBackend`."
    def tensor(type, shape, data) do
      %Nx.Tensor{
        type: type,
        shape: shape,
        names: List.duplicate(nil, tuple_size(shape)),
        data: %Nx.BinaryBackend{state: data}
      }
    end

    # As wide as the value may need.
    defp scalar({re, im}), do: tensor({:c, 128}, {}, Oracle.encode({re, im}, {:c, 128}))
    defp scalar(n) when is_integer(n) and n < 0, do: tensor({:s, 64}, {}, <<n::64-native>>)
    defp scalar(n) when is_integer(n), do: tensor({:u, 64}, {}, <<n::64-native>>)
    defp scalar(x), do: tensor({:f, 64}, {}, Oracle.encode(x, {:f, 64}))
  end
end
