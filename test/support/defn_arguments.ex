if Code.ensure_loaded?(Nx.Defn) do
  defmodule Ferrox.DefnArguments do
    @moduledoc """
    The arguments of the operations that random functions are made of: some values, changed so that they
    fit together, and options, at random, from `:rand`'s state of the process.

    A function's arguments are made one after the other, from the values and the arguments before:

      * `:any` is a value, `:real`, `:float`, `:integer`, `:inexact` (float or complex) one that is
        converted, `:as_before` one in the type of the argument before;
      * `{:ranked, kind}` has an axis at least, `{:plane, kind}` two, `{:few, kind}` few elements,
        `{:flat, kind}` these in one axis;
      * `{:scalar, kind}` is its first number, `:like` can be broadcast to the first argument, `:fit` has
        its shape;
      * a list has options, each of which is there or isn't, or is `{:always, kind}`;
      * other kinds are what their clauses say, constants themselves.
    """

    @doc "An argument of a kind."
    def argument(:values, values, _args), do: values
    def argument(:any, values, _args), do: pick(values)
    def argument(:real, values, _args), do: values |> pick() |> real()
    def argument(:inexact, values, _args), do: values |> pick() |> inexact()
    def argument(:float, values, _args), do: values |> pick() |> real() |> inexact()
    def argument(:integer, values, _args), do: values |> pick() |> integer()

    def argument(:as_before, values, args),
      do: values |> pick() |> real() |> Nx.as_type(tensor(args).type)

    def argument({:ranked, kind}, values, args), do: kind |> argument(values, args) |> ranked(1)
    def argument({:plane, kind}, values, args), do: kind |> argument(values, args) |> ranked(2)
    def argument({:few, kind}, values, args), do: kind |> argument(values, args) |> few(3)
    def argument({:scalar, kind}, values, args), do: kind |> argument(values, args) |> scalar()

    def argument({:flat, kind}, values, args),
      do: {:few, kind} |> argument(values, args) |> Nx.flatten()

    def argument(:like, values, args), do: values |> pick() |> like(tensor(args))

    def argument({:like, kind}, values, args),
      do: kind |> argument(values, args) |> like(tensor(args))

    def argument(:fit, values, args),
      do: values |> pick() |> real() |> resize(tensor(args).shape)

    def argument(:fit_rows, values, args),
      do: values |> pick() |> real() |> resize({elem(tensor(args).shape, 0)})

    def argument(:matrix, values, args),
      do: {:plane, :inexact} |> argument(values, args) |> corner()

    def argument(:square, values, args), do: :matrix |> argument(values, args) |> square()

    def argument(:positive, values, args) do
      %{shape: shape} = a = :square |> argument(values, args) |> real()
      batch = Enum.to_list(0..(tuple_size(shape) - 3)//1)

      Nx.add(
        Nx.dot(a, [-1], batch, a, [-1], batch),
        Nx.multiply(4, Nx.eye(elem(shape, tuple_size(shape) - 1)))
      )
    end

    def argument(:bits, values, args),
      do: :integer |> argument(values, args) |> index(8) |> like(tensor(args))

    def argument(:indices, values, args) do
      size = tensor(args).shape |> Tuple.to_list() |> Enum.min()
      values |> pick() |> few(3) |> index(size)
    end

    def argument(:start, values, _args),
      do: Enum.random([0, 1, values |> pick() |> scalar() |> index(3)])

    def argument(:key, values, _args) do
      seed = Enum.random([7, values |> pick() |> real() |> scalar() |> Nx.as_type(:s64)])
      Nx.Random.key(seed)
    end

    def argument(:mean, values, _args), do: values |> pick() |> real() |> inexact() |> resize({3})

    def argument(:covariance, _values, _args), do: Nx.add(Nx.eye(3), 0.25)

    def argument({:of, list}, _values, _args), do: Enum.random(list)
    def argument(:boolean, _values, _args), do: Enum.random([true, false])
    def argument(:type, _values, _args), do: Enum.random(real_types())
    def argument(:float_type, _values, _args), do: Enum.random(f: 32, f: 64, bf: 16, f: 16)

    def argument(:shape, values, _args),
      do: Enum.random([pick(values).shape, {}, {2}, {3, 4}, {4, 3, 2}])

    def argument(:matrix_shape, _values, _args), do: Enum.random([2, {3, 3}, {2, 4}, {2, 3, 2}])

    def argument(:axis_of_shape, _values, [shape | _]),
      do: Enum.random([nil | Enum.to_list(0..(tuple_size(shape) - 1)//1)])

    def argument(:axis, _values, args), do: Enum.random(-rank(args)..(rank(args) - 1)//1)
    def argument(:axes, _values, args), do: Enum.take_random(axes(args), :rand.uniform(3))
    def argument(:permutation, _values, args), do: Enum.shuffle(axes(args))
    def argument(:new_axis, _values, args), do: Enum.random([-1 | Enum.to_list(0..rank(args))])

    def argument(:repetitions, _values, args),
      do: for(_ <- [0 | axes(args)], do: Enum.random([1, 1, 2]))

    def argument(:padding, _values, args) do
      for _ <- axes(args),
          do: Enum.random([{0, 0, 0}, {1, 0, 0}, {0, 2, 1}, {-1, 1, 0}, {1, -1, 2}])
    end

    def argument(:reflection, _values, args),
      do: for(_ <- axes(args), do: Enum.random([{0, 0}, {1, 0}, {0, 1}, {2, 1}]))

    def argument(:window, _values, args), do: window(tensor(args).shape, & &1)

    # What Nx would not refuse if dilated by two, though it is larger than an axis.
    def argument(:dilated_window, _values, args),
      do: window(tensor(args).shape, &div(&1 + 1, 2))

    def argument(:strides, _values, args),
      do: Enum.random([1, 2, for(_ <- axes(args), do: Enum.random(1..2))])

    def argument(:window_padding, _values, args),
      do:
        Enum.random([
          :valid,
          :same,
          for(_ <- axes(args), do: Enum.random([{0, 1}, {1, 0}, {1, 1}]))
        ])

    def argument(:of_last, _values, args) do
      shape = tensor(args).shape
      Enum.random(1..min(elem(shape, tuple_size(shape) - 1), 5))
    end

    def argument(:vector_axis, _values, args), do: vector_name(elem(tensor(args).shape, 0))
    def argument(:names, _values, args), do: names(tensor(args).shape)

    def argument([{_name, _kind} | _] = options, values, args) do
      Enum.flat_map(options, fn
        {name, {:always, kind}} -> [{name, argument(kind, values, args)}]
        {name, kind} -> if one_of?(2), do: [{name, argument(kind, values, args)}], else: []
      end)
    end

    def argument(constant, _values, _args), do: constant

    defp window(shape, part) do
      sizes = for size <- Tuple.to_list(shape), do: Enum.random(1..min(part.(size), 3))
      List.to_tuple(sizes)
    end

    defp one_of?(count), do: :rand.uniform(count) == 1
    defp tensor(args), do: Enum.find(args, &is_struct(&1, Nx.Tensor))
    defp rank(args), do: Nx.rank(tensor(args))
    defp axes(args), do: Nx.axes(tensor(args))

    @real_types [f: 32, f: 32, s: 32, u: 8, f: 64, bf: 16, f: 16, s: 64, s: 8, u: 16, u: 32] ++
                  [u: 64, s: 16, s: 4, u: 2, u: 4, s: 2]

    # Types of 8 bits of which older releases of Nx have one only.
    @f8 if Code.ensure_loaded?(Nx.Floating) and
             function_exported?(Nx.Floating, :load_f8_e4m3fn, 1),
           do: [f: 8, f8_e4m3fn: 8],
           else: [f: 8]

    @doc "The types but for complex ones; f32 is there more than once."
    def real_types, do: @real_types ++ @f8

    @doc "One of the values: those that are first, which are the latest, more often."
    def pick(values),
      do: Enum.at(values, rem(Enum.random([0, 0, 0, 1, 1, 2, 3, 4, 6, 9]), length(values)))

    @doc "The name of a vectorized axis of a size: axes of the same name have the same size."
    def vector_name(size), do: :"v#{size}"

    @doc "Names of axes: the same name for the same size."
    def names(shape) do
      names = for size <- Tuple.to_list(shape), do: if(size > 1, do: :"n#{size}")
      if Enum.uniq(names -- [nil]) == names, do: names, else: [nil | tl(names)]
    end

    @doc "The first element."
    def first(value), do: value |> Nx.flatten() |> Nx.slice([0], [1]) |> Nx.reshape({})

    @doc "The first number, of the first vectorized entry too."
    def scalar(value), do: value |> Nx.devectorize() |> first()

    @doc "The value, or the real part of a complex one."
    def real(%{type: {:c, _}} = value), do: Nx.real(value)
    def real(value), do: value

    @doc "The value as f32 if it is of integers."
    def inexact(%{type: {kind, _}} = value) when kind in [:s, :u], do: Nx.as_type(value, :f32)
    def inexact(value), do: value

    @doc "A value with the elements of another, the first ones or again and again, in a shape."
    def resize(%{shape: shape} = value, shape), do: value

    def resize(value, shape) do
      flat = Nx.flatten(value)
      {size, count} = {elem(flat.shape, 0), Tuple.product(shape)}

      flat =
        if count <= size,
          do: Nx.slice(flat, [0], [count]),
          else: Nx.take(flat, Nx.remainder(Nx.iota({count}), size))

      Nx.reshape(flat, shape)
    end

    defp integer(%{type: {kind, _}} = value) when kind in [:s, :u], do: value
    defp integer(value), do: value |> real() |> Nx.as_type(:s32)

    @doc "Whole numbers from zero up to a size, which is not among them."
    def index(value, size),
      do: value |> integer() |> Nx.as_type(:s32) |> Nx.remainder(size) |> Nx.abs()

    @doc "The value with so many axes at least: others, of size two, come first."
    def ranked(value, rank) do
      case Nx.rank(value) do
        r when r >= rank ->
          value

        r ->
          Nx.broadcast(
            value,
            List.to_tuple(List.duplicate(2, rank - r) ++ Tuple.to_list(value.shape))
          )
      end
    end

    @doc "So many elements along each axis at most, the first ones."
    def few(%{shape: shape} = value, size) do
      lengths = for n <- Tuple.to_list(shape), do: min(n, size)
      Nx.slice(value, List.duplicate(0, tuple_size(shape)), lengths)
    end

    # At most four rows and columns of the first matrices.
    defp corner(value), do: few(value, 4)

    defp square(%{shape: shape} = value) do
      sizes = Tuple.to_list(shape)
      {batch, matrix} = Enum.split(sizes, -2)

      Nx.slice(
        value,
        List.duplicate(0, length(sizes)),
        batch ++ List.duplicate(Enum.min(matrix), 2)
      )
    end

    @doc "The value, or its first element, so that it can be broadcast to another."
    def like(value, other),
      do: if(compatible?(value.shape, other.shape), do: value, else: first(value))

    defp compatible?(a, b) do
      {a, b} = {Enum.reverse(Tuple.to_list(a)), Enum.reverse(Tuple.to_list(b))}
      Enum.zip(a, b) |> Enum.all?(fn {x, y} -> x == y or x == 1 or y == 1 end)
    end
  end
end
