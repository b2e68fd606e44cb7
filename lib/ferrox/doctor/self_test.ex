defmodule Ferrox.Doctor.SelfTest do
  @moduledoc false
  # A test of each family of operations on the machine at hand, for `mix ferrox.doctor`: answers that are
  # known, or computed again in Elixir. Some operands are large enough for all threads.
  #
  # A family is a list of `{what, got, expected}`. Lists of floats are compared with a tolerance.

  import Bitwise

  alias Ferrox.Defn.Program
  alias Ferrox.{Native, Numbers, Promotion, Random, Tensor}

  @compile {:no_warn_undefined, [Nx, Nx.Defn, Nx.Defn.Evaluator]}

  @type verdict :: :ok | {:wrong, String.t()}

  @f32 {:f, 32}
  @f64 {:f, 64}
  @s32 {:s, 32}
  @s64 {:s, 64}

  # The greatest error, relative to the largest number of a list.
  @tolerance 1.0e-12

  @families [
    elementwise: "elementwise",
    reductions: "reductions",
    products: "products",
    shapes: "shapes",
    sorts: "sorts",
    indexed: "indexed",
    windows: "windows and convolutions",
    linalg: "linear algebra",
    fourier: "Fourier transforms",
    random: "random numbers",
    promotion: "promotion",
    programs: "compiled programs"
  ]

  @doc "Tests all families; compiled programs if `programs?`, which takes Nx."
  @spec run(boolean) :: [{String.t(), verdict}]
  def run(programs?) do
    for {family, name} <- @families, family != :programs or programs? do
      {name, judge(fn -> Promotion.with(:nx, fn -> cases(family) end) end)}
    end
  end

  @doc "What the cases come to that a function gives: the first that is wrong, or what was raised."
  @spec judge(fun) :: verdict
  def judge(cases) do
    case Enum.find(cases.(), fn {_what, got, expected} -> not same?(got, expected) end) do
      nil -> :ok
      {what, got, expected} -> {:wrong, "#{what} gave #{show(got)}, and not #{show(expected)}"}
    end
  rescue
    exception ->
      {:wrong, exception |> Exception.message() |> String.split("\n") |> hd()}
  end

  defp same?([x | _] = got, [y | _] = expected) when is_float(x) and is_float(y) do
    scale = expected |> Enum.map(&abs/1) |> Enum.max()

    length(got) == length(expected) and
      Enum.zip_with(got, expected, &(is_number(&1) and abs(&1 - &2) <= @tolerance * scale))
      |> Enum.all?()
  end

  defp same?(got, expected), do: got == expected

  defp show(value), do: inspect(value, limit: 4, printable_limit: 40)

  ## The families

  defp cases(:elementwise) do
    n = 10_000
    {a, b} = {operand(1..n, @f32), operand(n..1//-1, @f32)}
    {x, y} = {reals(n), Enum.map(reals(n), &(&1 + 0.5))}
    {xs, ys} = {operand(x, @f64), operand(y, @f64)}
    large = Native.iota(@f32, {1_000_000}, nil)
    large = {@f32, {1_000_000}, large}

    arithmetic =
      for {op, fun} <- [add: &+/2, subtract: &-/2, multiply: &*/2, divide: &//2] do
        expected = Enum.zip_with(1..n, n..1//-1, fun)
        {"#{op} of f32", Native.binary(op, @f32, {n}, a, b), data(expected, @f32)}
      end

    functions =
      for {op, fun} <- [
            sqrt: &:math.sqrt/1,
            exp: &:math.exp/1,
            log: &:math.log/1,
            sin: &:math.sin/1,
            tanh: &:math.tanh/1,
            erf: &:math.erf/1
          ] do
        {"#{op} of f64", read(Native.unary(op, @f64, ys), @f64), Enum.map(y, fun)}
      end

    integers =
      for kind <- [:s, :u], bits <- [8, 16, 32, 64] do
        type = {kind, bits}
        numbers = for i <- 1..n, do: i * 40_503
        {low, high} = Numbers.integer_range(type)
        wrapped = for i <- numbers, do: Integer.mod(i - low, high - low + 1) + low
        doubled = for i <- numbers, do: Integer.mod(2 * i - low, high - low + 1) + low
        operand = operand(wrapped, type)

        {"add of #{kind}#{bits}", Native.binary(:add, type, {n}, operand, operand),
         data(doubled, type)}
      end

    arithmetic ++
      functions ++
      integers ++
      [
        {"less of f64", Native.binary(:less, {:u, 8}, {n}, xs, ys), :binary.copy(<<1>>, n)},
        {"select", Native.select(@f32, {n}, operand(List.duplicate(0, n), {:u, 8}), a, b),
         elem(b, 2)},
        {"as_type from f32 to s64", Native.as_type(@s64, a), data(1..n, @s64)},
        {"as_type from f32 to bf16 and back",
         Native.as_type(
           @f32,
           {{:bf, 16}, {256}, Native.as_type({:bf, 16}, operand(1..256, @f32))}
         ), data(1..256, @f32)},
        {"add of a million f32", Native.binary(:add, @f32, {1_000_000}, large, large),
         Native.binary(:multiply, @f32, {1_000_000}, large, operand([2], @f32, {}))}
      ]
  end

  defp cases(:reductions) do
    n = 1_000_000
    large = {@s64, {n}, Native.iota(@s64, {n}, nil)}
    ones = {@f32, {n}, Native.broadcast({n}, [], operand([1], @f32, {}))}
    small = operand(1..12, @s32, {3, 4})

    [
      {"sum of a million s64", Native.reduce(:sum, @s64, {}, nil, large),
       data([div(n * (n - 1), 2)], @s64)},
      {"sum of a million f32", Native.reduce(:sum, @f32, {}, nil, ones), data([n], @f32)},
      {"reduce_max", Native.reduce(:reduce_max, @s64, {}, nil, large), data([n - 1], @s64)},
      {"argmin", Native.arg_reduce(:reduce_min, @s32, {}, nil, :low, ones), data([0], @s32)},
      {"argmax", Native.arg_reduce(:reduce_max, @s32, {}, nil, :high, ones), data([n - 1], @s32)},
      {"sum of rows", Native.reduce(:sum, @s64, {3}, [1], small), data([10, 26, 42], @s64)},
      {"product of columns", Native.reduce(:product, @s64, {4}, [0], small),
       data([45, 120, 231, 384], @s64)},
      {"all", Native.reduce(:all, {:u, 8}, {}, nil, large), <<0>>},
      {"any", Native.reduce(:any, {:u, 8}, {}, nil, large), <<1>>},
      {"cumulative_sum", Native.cumulative(:cumulative_sum, 1, false, small),
       data([1, 3, 6, 10, 5, 11, 18, 26, 9, 19, 30, 42], @s32)}
    ]
  end

  defp cases(:products) do
    {m, k, n} = {33, 50, 41}
    a = for i <- 1..m, do: for(j <- 1..k, do: rem(i * j, 7) - 3)
    b = for i <- 1..k, do: for(j <- 1..n, do: rem(i + 2 * j, 5) - 2)
    expected = List.flatten(matmul(a, b))

    small =
      for type <- [@s32, @s64, @f32, @f64, {:bf, 16}, {:c, 64}] do
        left = {operand(List.flatten(a), type, {m, k}), [1], []}
        right = {operand(List.flatten(b), type, {k, n}), [0], []}
        {"dot of #{name(type)}", Native.dot(type, {m, n}, left, right), data(expected, type)}
      end

    size = 512
    ones = {@f32, {size, size}, Native.broadcast({size, size}, [], operand([1], @f32, {}))}

    small ++
      [
        {"dot of large f32", Native.dot(@f32, {size, size}, {ones, [1], []}, {ones, [0], []}),
         Native.broadcast({size, size}, [], operand([size], @f32, {}))},
        {"dot of a matrix and a vector",
         Native.dot(@f64, {m}, {operand(List.flatten(a), @f64, {m, k}), [1], []}, {
           operand(1..k, @f64),
           [0],
           []
         }), data(List.flatten(matmul(a, Enum.map(1..k, &[&1]))), @f64)}
      ]
  end

  defp cases(:shapes) do
    {m, n} = {70, 90}
    columns = for j <- 0..(n - 1), i <- 0..(m - 1), do: i * n + j

    transposes =
      for type <- [{:s, 16}, @s32, @f64, {:c, 128}] do
        {"transpose of #{name(type)}",
         Native.transpose({n, m}, [1, 0], operand(0..(m * n - 1), type, {m, n})),
         data(columns, type)}
      end

    row = operand(1..4, @s32)

    transposes ++
      [
        {"reverse", Native.reverse({4}, [0], row), data([4, 3, 2, 1], @s32)},
        {"slice", Native.slice({2}, [1], [3], [2], row), data([2, 4], @s32)},
        {"broadcast", Native.broadcast({2, 4}, [1], row), data([1, 2, 3, 4, 1, 2, 3, 4], @s32)},
        {"concatenate",
         Native.concatenate(@s32, {1, 8}, 1, List.duplicate({@s32, {1, 4}, elem(row, 2)}, 2)),
         data([1, 2, 3, 4, 1, 2, 3, 4], @s32)},
        {"pad", Native.pad(@s32, {8}, [{1, 0, 1}], row, operand([0], @s32, {})),
         data([0, 1, 0, 2, 0, 3, 0, 4], @s32)}
      ]
  end

  defp cases(:sorts) do
    numbers = integers(20_000)
    sorted = Enum.sort(numbers)

    sorts =
      for type <- [@s32, @s64, @f32, @f64] do
        {"sort of #{name(type)}", Native.sort(0, false, operand(numbers, type)),
         data(sorted, type)}
      end

    places = numbers |> Enum.with_index() |> Enum.sort_by(&elem(&1, 0)) |> Enum.map(&elem(&1, 1))

    sorts ++
      [
        {"sort, descending", Native.sort(0, true, operand(numbers, @s32)),
         data(Enum.reverse(sorted), @s32)},
        {"argsort", Native.argsort(@s32, 0, false, operand(numbers, @s32)), data(places, @s32)},
        {"top_k", Native.top_k(@s32, {2}, operand([3, 1, 4, 1, 5], @s32)), data([4, 2], @s32)}
      ]
  end

  defp cases(:indexed) do
    n = 5_000
    {values, back} = {operand(1..n, @f32), operand((n - 1)..0//-1, @s64)}
    reversed = data(n..1//-1, @f32)
    zeros = operand(List.duplicate(0, 4), @s32)
    places = operand([1, 3, 1], @s64, {3, 1})

    [
      {"take", Native.take({n}, 0, values, back), reversed},
      {"take_along_axis", Native.take_along_axis(0, values, back), reversed},
      {"gather", Native.gather({n}, [0], values, put_elem(back, 1, {n, 1})), reversed},
      {"indexed_add", Native.indexed(:indexed_add, @s32, [0], zeros, places, operand(1..3, @s32)),
       data([0, 4, 0, 2], @s32)},
      {"indexed_put",
       Native.indexed(:indexed_put, @f32, [0], values, put_elem(back, 1, {n, 1}), values),
       reversed},
      {"put_slice", Native.put_slice(@s32, [2], zeros, operand([7, 8], @s32)),
       data([0, 0, 7, 8], @s32)}
    ]
  end

  defp cases(:windows) do
    size = 24
    out = size - 2
    image = for i <- 1..size, do: for(j <- 1..size, do: rem(i * 7 + j * 3, 11))
    pixels = image |> Enum.map(&List.to_tuple/1) |> List.to_tuple()
    kernel = [1, -2, 3, 0, 5, 1, -1, 2, 4]

    windows =
      for i <- 0..(out - 1), j <- 0..(out - 1) do
        for di <- 0..2, dj <- 0..2, do: pixels |> elem(i + di) |> elem(j + dj)
      end

    over = {{3, 3}, [{0, 0}, {0, 0}], [1, 1], [1, 1]}
    order = [0, 1, 2, 3]
    options = {[1, 1], [{0, 0}, {0, 0}], [1, 1], [1, 1], {1, 1}, {order, order, order}}
    image = List.flatten(image)

    sums =
      for {op, fun} <- [window_sum: &Enum.sum/1, window_max: &Enum.max/1], type <- [@s32, @f32] do
        {"#{op} of #{name(type)}",
         Native.window(op, type, {out, out}, over, operand(image, type, {size, size})),
         data(Enum.map(windows, fun), type)}
      end

    convolutions =
      for type <- [@s32, @f32, @f64] do
        expected = for window <- windows, do: Enum.zip_with(window, kernel, &*/2) |> Enum.sum()

        {"conv of #{name(type)}",
         Native.conv(
           type,
           {1, 1, out, out},
           operand(image, type, {1, 1, size, size}),
           operand(kernel, type, {1, 1, 3, 3}),
           options
         ), data(expected, type)}
      end

    sums ++ convolutions
  end

  defp cases(:linalg) do
    n = 24
    # Symmetric, and positive definite.
    a = for i <- 1..n, do: for(j <- 1..n, do: if(i == j, do: 4.0 * i, else: 1.0 / (i + j)))

    flat = List.flatten(a)
    matrix = operand(flat, @f64, {n, n})
    square = {@f64, {n, n}}
    x = reals(n)
    right = operand(List.flatten(matmul(a, Enum.map(x, &[&1]))), @f64, {n})
    [l] = Native.factor(:cholesky, [square], 0.0, matrix)
    [q, r] = Native.factor(:qr, [square, square], 0.0, matrix)
    [p, lower, upper] = Native.factor(:lu, [square, square, square], 0.0, matrix)
    [values, vectors] = Native.factor(:eigh, [{@f64, {n}}, square], 0.0, matrix)
    [u, s, vt] = Native.factor(:svd, [square, {@f64, {n}}, square], 0.0, matrix)
    [q, r, p, lower, upper, vectors, u, vt] = rows([q, r, p, lower, upper, vectors, u, vt], n)
    [l] = rows([l], n)
    triangle = operand([2.0, 0.0, 1.0, 4.0], @f64, {2, 2})

    [
      {"solve", read(Native.solve(:lu, @f64, matrix, right), @f64), x},
      {"triangular_solve",
       read(
         Native.solve({true, true, :none}, @f64, triangle, operand([2.0, 9.0], @f64)),
         @f64
       ), [1.0, 2.0]},
      {"cholesky", List.flatten(matmul(l, transpose(l))), flat},
      {"qr", List.flatten(matmul(q, r)), flat},
      {"lu", p |> matmul(lower) |> matmul(upper) |> List.flatten(), flat},
      {"eigh", List.flatten(matmul(a, vectors)), List.flatten(scaled(vectors, values))},
      {"svd", u |> scaled(s) |> matmul(vt) |> List.flatten(), flat},
      {"determinant", read(hd(Native.factor(:determinant, [{@f64, {}}], 0.0, triangle)), @f64),
       [8.0]}
    ]
  end

  defp cases(:fourier) do
    for n <- [64, 97, 120] do
      x = reals(n)
      {c64, c128} = {{:c, 64}, {:c, 128}}
      impulse = operand([1 | List.duplicate(0, n - 1)], c64)
      there = Native.fourier(:fft, c128, {n}, [{0, n}], 0.0, operand(x, @f64))
      back = Native.fourier(:ifft, c128, {n}, [{0, n}], 0.0, {c128, {n}, there})
      back = for <<re::float-64-native, _im::float-64-native <- back>>, do: re

      [
        {"fft of an impulse of #{n}", Native.fourier(:fft, c64, {n}, [{0, n}], 0.0, impulse),
         data(List.duplicate(1, n), c64)},
        {"ifft of the fft of #{n}", back, x}
      ]
    end
    |> List.flatten()
  end

  # Bits beside those of the generator, and numbers that JAX and Nx give for these keys.
  defp cases(:random) do
    parts = 500
    drawn = fn {tensor, _next} -> Ferrox.to_flat_list(tensor) end
    shuffled = Random.key(7) |> Random.shuffle(Ferrox.iota({10_000}))

    [
      {"split", Ferrox.to_list(Random.split(Random.key(1701), parts: parts)),
       split([0, 1701], parts)},
      {"uniform", drawn.(Random.uniform(Random.key(1701))), [0.9728643894195557]},
      {"normal", drawn.(Random.normal(Random.key(42))), [1.3694695234298706]},
      {"randint", drawn.(Random.randint(Random.key(1701), 1, 100, shape: {6}, type: :u32)),
       [9, 20, 19, 6, 71, 15]},
      {"shuffle", shuffled |> drawn.() |> Enum.sort(), Enum.to_list(0..9_999)}
    ]
  end

  defp cases(:promotion) do
    for {system, left, right, expected} <- [
          {:nx, {:u, 8}, {:s, 8}, {:s, 16}},
          {:nx, {:s, 64}, @f32, @f32},
          {:nx, {:u, 64}, {:s, 64}, @s64},
          {:jax, {:s, 32}, {:f, 16}, {:f, 16}},
          {:numpy, {:s, 32}, @f32, @f64}
        ] do
      {"#{system}'s promotion of #{name(left)} and #{name(right)}",
       Promotion.promote(left, right, system: system), expected}
    end ++
      [
        {"the type of a quotient of integers",
         Ferrox.type(Ferrox.divide(Ferrox.tensor([1]), Ferrox.tensor([2]))), @f32}
      ]
  end

  # Random programs, compiled, beside Nx's evaluator.
  defp cases(:programs) do
    :rand.seed(:exsss, {1, 2, 3})

    for number <- 1..24 do
      steps = for _ <- 1..8, do: step()
      shape = Enum.random([{4, 7}, {70, 100}])
      tensors = for k <- 1..2, do: tensor(shape, number + k)
      fun = fn a, b -> Enum.reduce(steps, {a, b}, &apply_step/2) end

      {"program #{number}", tensors |> compiled(fun) |> binaries(),
       fun |> Nx.Defn.jit_apply(tensors, compiler: Nx.Defn.Evaluator) |> binaries()}
    end
  end

  defp tensor(shape, seed) do
    numbers = for x <- reals(Native.size(shape)), do: x * seed - 2.0
    template = Nx.template(shape, @f32)
    %{template | data: %Ferrox.Backend{state: data(numbers, @f32)}}
  end

  # Past the cache, which would warn of so many functions of the same code.
  defp compiled(tensors, fun) do
    tensors
    |> Program.compile(apply(Nx.Defn.debug_expr(fun), tensors), %{}, :exact)
    |> Program.run(Enum.map(tensors, &fn -> &1 end), %{})
  end

  defp binaries(tensors), do: tensors |> Tuple.to_list() |> Enum.map(&Nx.to_binary/1)

  # A step takes the last two values, both of one shape and of f32, and gives the next.
  defp step do
    Enum.random([
      {:unary, Enum.random([:sigmoid, :sin, :tanh, :negate, :abs, :erf, :floor])},
      {:binary, Enum.random([:add, :subtract, :multiply, :max, :min, :atan2])},
      {:reduce, Enum.random([:sum, :reduce_max, :mean])},
      :select,
      :sort,
      :reverse,
      :product
    ])
  end

  defp apply_step({:unary, op}, {a, b}), do: {b, apply(Nx, op, [a])}
  defp apply_step({:binary, op}, {a, b}), do: {b, apply(Nx, op, [a, b])}

  defp apply_step({:reduce, op}, {a, b}),
    do: {b, Nx.subtract(a, apply(Nx, op, [b, [axes: [1], keep_axes: true]]))}

  defp apply_step(:select, {a, b}), do: {b, Nx.select(Nx.less(a, b), b, a)}
  defp apply_step(:sort, {a, b}), do: {b, Nx.sort(a, axis: 1)}
  defp apply_step(:reverse, {a, b}), do: {b, Nx.reverse(a, axes: [0])}

  defp apply_step(:product, {a, b}),
    do: {b, Nx.tanh(Nx.dot(Nx.dot(a, [1], b, [1]), b))}

  ## Numbers

  # Numbers from 0 to 1, and 32-bit integers, the same ones each time.
  defp reals(n), do: for(i <- 1..n, do: rem(i * 7919, 10_007) / 10_007)
  defp integers(n), do: for(i <- 1..n, do: rem(i * 48_271, 65_521) - 30_000)

  defp name({kind, bits}), do: "#{kind}#{bits}"

  defp data(numbers, type), do: numbers |> Enum.to_list() |> Numbers.encode(type, :self_test)

  defp operand(numbers, type, shape \\ nil) do
    numbers = Enum.to_list(numbers)
    {type, shape || {length(numbers)}, data(numbers, type)}
  end

  defp read(data, {_, bits} = type),
    do: Ferrox.to_flat_list(%Tensor{data: data, type: type, shape: {div(bit_size(data), bits)}})

  defp rows(matrices, n), do: for(data <- matrices, do: data |> read(@f64) |> Enum.chunk_every(n))

  defp matmul(a, b) do
    columns = transpose(b)
    for row <- a, do: for(column <- columns, do: Enum.zip_with(row, column, &*/2) |> Enum.sum())
  end

  defp transpose(rows), do: Enum.zip_with(rows, & &1)

  # The keys that a key is split into.
  defp split(key, parts) do
    pairs = for i <- 0..(parts - 1), do: threefry([i, i + parts], key)
    {first, second} = Enum.unzip(pairs)
    Enum.chunk_every(first ++ second, 2)
  end

  # Threefry-2x32 in 20 rounds, of Salmon, Moraes, Dror and Shaw: "Parallel random numbers: as easy as
  # 1, 2, 3" (2011).
  defp threefry([x, y], [k0, k1]) do
    keys = [k0, k1, bxor(bxor(k0, k1), 0x1BD11BDA)]

    Enum.reduce(0..4, {word(x + k0), word(y + k1)}, fn group, words ->
      rotations = if rem(group, 2) == 0, do: [13, 15, 26, 6], else: [17, 29, 16, 24]
      {x, y} = Enum.reduce(rotations, words, &mixed/2)
      [first, second] = for i <- 1..2, do: Enum.at(keys, rem(group + i, 3))
      {word(x + first), word(y + second + group + 1)}
    end)
  end

  defp mixed(rotation, {x, y}) do
    x = word(x + y)
    {x, bxor(x, word(y <<< rotation) + (y >>> (32 - rotation)))}
  end

  defp word(integer), do: integer &&& 0xFFFF_FFFF

  # A matrix whose columns are multiplied.
  defp scaled(rows, factors) do
    factors = read(factors, @f64)
    for row <- rows, do: Enum.zip_with(row, factors, &*/2)
  end
end
