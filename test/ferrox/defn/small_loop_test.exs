if Code.ensure_loaded?(Nx.Defn) do
  # Loops over numbers and small arrays: values that lie in other ones, or are changed in place.
  defmodule Ferrox.Defn.SmallLoopTest do
    use Ferrox.DefnCase, async: true

    defp small_loop!(fun, args) do
      same!(fun, args)
      assert explained(fun, args) =~ "on registers"
    end

    # A loop whose array is changed in place, and which two conditions may need.
    defn in_branches(x, p, q) do
      {_, total, _, _, _} =
        while {i = 0, total = Nx.tensor(0.0), x, p, q}, i < 10 do
          {_, y, _, _} =
            while {j = 0, y = x, x, i}, j < 64 do
              {j + 1, Nx.put_slice(y, [j], Nx.reshape(x[j] * (2 + i), {1})), x, i}
            end

          a = if p[i], do: Nx.sum(y), else: Nx.tensor(0.0)
          b = if q[i], do: Nx.sum(y), else: Nx.tensor(0.0)
          {i + 1, total + a + 2 * b, x, p, q}
        end

      total
    end

    test "a loop that branches share is run once, and all of them have its array" do
      p = Nx.tensor([1, 0, 1, 1, 0, 0, 1, 1, 0, 1], type: :u8)
      q = Nx.tensor([1, 1, 0, 1, 0, 1, 1, 0, 0, 1], type: :u8)
      small_loop!(&in_branches/3, [Nx.iota({64}, type: :f32), p, q])
    end

    defn sums_of_rows(x) do
      {_, total, _} =
        while {i = 0, total = Nx.tensor(0.0), x}, i < 20 do
          row = x[i]

          {_, sum, _} =
            while {j = 0, sum = Nx.tensor(0.0), row}, j < 64 do
              {j + 1, sum + row[j], row}
            end

          {i + 1, total + sum, x}
        end

      total
    end

    test "a row of a tensor is passed to a loop" do
      small_loop!(&sums_of_rows/1, [Nx.iota({20, 64}, type: :f32)])
    end

    # Each trip exchanges elements of a row of a larger array, and reads the row before and after it is
    # replaced.
    defn exchanges(x) do
      {_, x} =
        while {i = 0, x}, i < 90 do
          {_, row, _} =
            while {j = 0, row = x[i], i}, j < 40 do
              first = row[j]
              last = row[j + 9]
              row = Nx.put_slice(row, [j], Nx.reshape(last, {1}))
              {j + 1, Nx.put_slice(row, [j + 9], Nx.reshape(first + i, {1})), i}
            end

          {i + 1, Nx.put_slice(x, [i + 1, 0], Nx.new_axis(row, 0))}
        end

      x
    end

    test "elements of an array are exchanged" do
      small_loop!(&exchanges/1, [Nx.iota({91, 50}, type: :f32)])
    end

    defn rotations(q, n) do
      {_, q, _} =
        while {i = 0, q, n}, i < n do
          step = Nx.stack([Nx.stack([0.9, -0.1]), Nx.stack([0.1, 0.9])])
          turned = Nx.dot(step, q)
          {i + 1, turned / Nx.sqrt(Nx.sum(turned * turned, axes: [0], keep_axes: true)), n}
        end

      q
    end

    test "products and sums of few elements" do
      for type <- [:f32, :f64] do
        q = Nx.tensor([[1.0, -0.25], [3.0, 2.0e-3]], type: type)
        small_loop!(&rotations/2, [q, Nx.tensor(1_000)])
      end
    end
  end
end
