if Code.ensure_loaded?(Nx) do
  defmodule Ferrox.WindowOracle do
    @moduledoc """
    Which elements a window or a kernel meets, and why an element of a result on
    `Ferrox.Backend` may differ from that on `Nx.BinaryBackend`: a class of
    `Ferrox.Differences.kept/0`, or another term if there is no good reason.
    """

    alias Ferrox.{Differences, Oracle}

    @doc """
    The elements that each window meets, in row-major order: their places in the
    tensor, nil for padding.
    """
    @spec met(tuple, tuple, keyword) :: [[non_neg_integer | nil]]
    def met(shape, window, opts) do
      rank = tuple_size(shape)
      ones = List.duplicate(1, rank)
      dilations = opts[:window_dilations] || ones

      axes =
        for {{dim, size, {low, high}, stride, dilation}, weight} <-
              [
                Tuple.to_list(shape),
                Tuple.to_list(window),
                opts[:padding],
                opts[:strides],
                dilations
              ]
              |> Enum.zip()
              |> Enum.zip(weights(shape)) do
          last = dim + low + high - (size - 1) * dilation - 1

          for start <- 0..last//stride do
            for place <- 0..(size - 1),
                do: within(start + place * dilation - low, dim, weight)
          end
        end

      axes |> product() |> Enum.map(fn window -> window |> product() |> Enum.map(&total/1) end)
    end

    defp weights(shape) do
      dims = Tuple.to_list(shape)
      for i <- 1..length(dims)//1, do: dims |> Enum.drop(i) |> Enum.product()
    end

    defp within(index, dim, weight), do: if(index in 0..(dim - 1)//1, do: index * weight)

    defp total(indices), do: if(nil not in indices, do: Enum.sum(indices))

    defp product([]), do: [[]]
    defp product([list | lists]), do: for(x <- list, rest <- product(lists), do: [x | rest])

    @doc """
    The products that each result of a convolution is the sum of, as places in the
    input (nil for padding) and in the kernel. Results are in row-major order before
    they are permuted.
    """
    def convolved(input_shape, kernel_shape, opts) do
      [batch, _ | dims] = permuted(input_shape, opts[:input_permutation])

      [batch_weight, channel_weight | weights] =
        permuted_weights(input_shape, opts[:input_permutation])

      [filters, channels | places] = permuted(kernel_shape, opts[:kernel_permutation])
      kernel_weights = permuted_weights(kernel_shape, opts[:kernel_permutation])
      {groups, batch_groups} = {opts[:feature_group_size], opts[:batch_group_size]}
      batch = div(batch, batch_groups)

      # Of each axis, for each position, the place in the input of each place of the
      # kernel.
      axes =
        for {dim, size, {low, high}, stride, dilation, kernel_dilation, weight} <-
              Enum.zip([
                dims,
                places,
                opts[:padding],
                opts[:strides],
                opts[:input_dilation],
                opts[:kernel_dilation],
                weights
              ]) do
          last = (dim - 1) * dilation + low + high - (size - 1) * kernel_dilation

          for start <- 0..last//stride do
            for place <- 0..(size - 1) do
              at = start + place * kernel_dilation - low
              if rem(at, dilation) == 0, do: within(div(at, dilation), dim, weight)
            end
          end
        end

      kernel_places =
        [channels | places]
        |> Enum.map(&Enum.to_list(0..(&1 - 1)))
        |> product()
        |> Enum.map(fn place -> dot(place, tl(kernel_weights)) end)

      for item <- 0..(batch - 1), filter <- 0..(filters - 1), position <- product(axes) do
        group = div(filter, div(filters, groups))
        of_batch = div(filter, div(filters, batch_groups)) * batch + item

        channel_offsets =
          for channel <- 0..(channels - 1),
              do: of_batch * batch_weight + (group * channels + channel) * channel_weight

        inputs =
          for offset <- channel_offsets,
              place <- position |> product() |> Enum.map(&total/1),
              do: place && place + offset

        Enum.zip(inputs, Enum.map(kernel_places, &(&1 + filter * hd(kernel_weights))))
      end
    end

    defp permuted(shape, permutation), do: Enum.map(permutation, &elem(shape, &1))

    defp permuted_weights(shape, permutation) do
      weights = shape |> weights() |> List.to_tuple()
      Enum.map(permutation, &elem(weights, &1))
    end

    defp dot(left, right), do: Enum.zip_with(left, right, &(&1 * &2)) |> Enum.sum()

    @doc "Why an element of a fold of windows differs."
    def explain(op, type, values, met, got) when op in [:window_sum, :window_product] do
      zero? = op == :window_sum
      values = for i <- met, i, do: elem(values, i)
      values = if values == [], do: [if(zero?, do: 0.0, else: 1.0)], else: values
      Differences.folded(if(zero?, do: :sum, else: :product), type, type, values, got)
    end

    def explain(op, type, values, met, got) when op in [:window_max, :window_min] do
      later = fn a, b -> if not_before?(op == :window_max, b, a), do: b, else: a end
      values = for i <- met, i, do: elem(values, i)

      best =
        cond do
          :nan in values -> :nan
          values == [] -> nil
          true -> Enum.reduce(values, &later.(&2, &1))
        end

      cond do
        best == nil or not Oracle.same?(got, Oracle.encode(best, type), type) ->
          {:should_be, best}

        type == {:f, 8} ->
          :f8_read

        true ->
          :differs
      end
    end

    @doc "The sources, in order, that go to each place of a window scatter."
    def scattered(op, values, init, met) do
      largest? = op == :window_scatter_max
      value = fn i -> if i, do: elem(values, i), else: init end

      met
      |> Enum.with_index()
      |> Enum.reduce(%{}, fn {[first | rest], source}, places ->
        chosen =
          Enum.reduce(rest, first, fn next, best ->
            if not_before?(largest?, value.(next), value.(best)), do: next, else: best
          end)

        if chosen, do: Map.update(places, chosen, [source], &(&1 ++ [source])), else: places
      end)
    end

    @doc "Why an element of a window scatter differs: the initial value and what was added."
    def scatter_explained([value], {kind, _} = type, got) when kind not in [:s, :u],
      do:
        if(Oracle.same?(got, Oracle.convert(value, type), type),
          do: :scattered,
          else: {:should_be, value}
        )

    def scatter_explained(terms, {kind, _} = type, got) when kind in [:s, :u] do
      total = Enum.sum(terms)
      if got == Oracle.encode(total, type), do: :scattered, else: {:should_be, total}
    end

    def scatter_explained(terms, type, got) do
      case Differences.folded(:sum, type, type, terms, got) do
        :accumulated -> :scattered
        why -> {why, terms}
      end
    end

    # Whether an element takes the place of one before it.
    defp not_before?(_, a, b) when a == :nan or b == :nan, do: false
    defp not_before?(true, a, b), do: rank(a) >= rank(b)
    defp not_before?(false, a, b), do: rank(a) <= rank(b)

    defp rank(:neg_infinity), do: {-1, 0}
    defp rank(:infinity), do: {1, 0}
    defp rank(number), do: {0, number}
  end
end
