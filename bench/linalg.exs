# Factorizations and systems of equations: how far what they give is from what it
# should be, beside LAPACK's through NumPy, and how long each takes, in one run.
#
#     MIX_ENV=prod mix run bench/linalg.exs
#
# NumPy is taken from the `python3` on the PATH, or from PYTHON; with SciPy there is
# an LU factorization to compare with too.

Code.require_file("measure.exs", __DIR__)

defmodule Bench.LinAlg do
  @rounds 3
  @sizes [8, 32, 128, 512]

  # What is left over, in units of rounding, and how the peer computes the same. The
  # second figure is how far from orthogonal the factors are.
  @problems [
    cholesky: "L = np.linalg.cholesky(P); r = [norm(L @ L.T - P) / norm(P)]",
    lu: "p, l, u = sl.lu(A); r = [norm(p @ l @ u - A) / norm(A)]",
    qr: "q, t = np.linalg.qr(A); r = [norm(q @ t - A) / norm(A), norm(q.T @ q - np.eye(n))]",
    solve: "x = np.linalg.solve(A, b); r = [norm(A @ x - b) / (norm(A) * norm(x))]",
    triangular_solve: "x = triangular(T, b); r = [norm(T @ x - b) / (norm(T) * norm(x))]",
    invert: "x = np.linalg.inv(D); r = [norm(D @ x - np.eye(n)) / (norm(D) * norm(x))]",
    determinant:
      "x = np.linalg.det(D); y = np.linalg.det(D.astype(np.float64)); r = [abs(x - y) / abs(y)]",
    eigh:
      "w, v = np.linalg.eigh(S); r = [norm(S @ v - v * w) / norm(S), norm(v.T @ v - np.eye(n))]",
    svd:
      "u, s, vt = np.linalg.svd(A); " <>
        "r = [norm((u * s) @ vt - A) / norm(A), norm(u.T @ u - np.eye(n)), norm(vt @ vt.T - np.eye(n))]"
  ]

  @calls [
    cholesky: "np.linalg.cholesky(P)",
    lu: "sl.lu(A)",
    qr: "np.linalg.qr(A)",
    solve: "np.linalg.solve(A, b)",
    triangular_solve: "triangular(T, b)",
    invert: "np.linalg.inv(D)",
    determinant: "np.linalg.det(D)",
    eigh: "np.linalg.eigh(S)",
    svd: "np.linalg.svd(A)"
  ]

  def run do
    Nx.default_backend(Ferrox.Backend)
    peer = Bench.peer() || raise "NumPy isn't there: nothing to compare with"

    Bench.setup(
      peer,
      "exec('try:\\n  import scipy.linalg as sl\\nexcept ImportError:\\n  sl = None'); norm = np.linalg.norm"
    )

    Bench.setup(
      peer,
      "triangular = lambda a, b: np.linalg.solve(a, b) if sl is None else " <>
        "sl.solve_triangular(a, b, lower=True)"
    )

    scipy? = Bench.value(peer, "sl is not None") == "True"
    problems = if scipy?, do: @problems, else: Keyword.delete(@problems, :lu)

    IO.puts("Residuals in units of rounding, and us, beside #{peer.name}:\n")
    IO.puts("                               residual    residual          us          us   ratio")
    IO.puts("                                 Ferrox       NumPy      Ferrox       NumPy")

    for type <- [:f64, :f32], kind <- [:random, :hilbert, :graded], n <- @sizes do
      matrices = matrices(kind, n, type)
      dtype = if type == :f64, do: "np.float64", else: "np.float32"
      Bench.setup(peer, "n = #{n}; i, j = np.indices((n, n)); A = #{formula(kind)}")
      Bench.setup(peer, "A = A.astype(#{dtype}); S = (A + A.T) / 2; b = A[:, :3] + 1")
      Bench.setup(peer, "P = (A @ A.T + n * np.eye(n)).astype(#{dtype})")
      Bench.setup(peer, "D = (P / n).astype(#{dtype}); T = np.tril(P)")

      for {problem, theirs} <- problems, solvable?(problem, kind, n) do
        compare(peer, {problem, kind, n, type}, matrices, theirs)
      end
    end
  end

  # Where a pivot vanishes there is nothing to compare, nor where a determinant of f32
  # overflows.
  defp solvable?(:determinant, kind, n), do: kind == :random and n <= 128
  defp solvable?(problem, kind, _) when problem in [:solve, :invert], do: kind == :random
  defp solvable?(_, _, _), do: true

  defp formula(:random), do: "np.sin(12.9898 * i + 78.233 * j + i * j * 0.7391)"
  defp formula(:hilbert), do: "1.0 / (i + j + 1)"

  defp formula(:graded),
    do: "np.sin(1.0 + i * 3 + j * j) * 10.0 ** (-12.0 * np.maximum(i, j) / n)"

  defp element(:random, i, j, _n), do: :math.sin(12.9898 * i + 78.233 * j + i * j * 0.7391)
  defp element(:hilbert, i, j, _n), do: 1.0 / (i + j + 1)

  defp element(:graded, i, j, n),
    do: :math.sin(1.0 + i * 3 + j * j) * :math.pow(10.0, -12.0 * max(i, j) / n)

  defp matrices(kind, n, type) do
    data =
      for i <- 0..(n - 1),
          j <- 0..(n - 1),
          into: <<>>,
          do: <<element(kind, i, j, n)::float-64-native>>

    a = data |> Nx.from_binary(:f64) |> Nx.reshape({n, n}) |> Nx.as_type(type)

    p = Nx.add(Nx.dot(a, Nx.transpose(a)), Nx.multiply(n, Nx.eye(n, type: type)))

    %{
      a: a,
      s: Nx.divide(Nx.add(a, Nx.transpose(a)), 2),
      b: Nx.add(a[[.., 0..2]], 1),
      p: p,
      t: Nx.tril(p),
      d: Nx.divide(p, n)
    }
  end

  defp compare(peer, {problem, kind, n, type}, m, theirs) do
    unit = if type == :f64, do: 2.0 ** -52, else: 2.0 ** -23
    [ours | _] = all = problem |> residuals(call(problem, m), m) |> Enum.map(&(&1 / unit))
    Bench.setup(peer, theirs)
    expected = for k <- 0..(length(all) - 1), do: number(peer, "float(r[#{k}])") / unit

    for {got, bound} <- Enum.zip(all, expected) do
      # A few roundings for each row are what any algorithm leaves.
      unless got <= 4 * bound + n / 8 + 8 do
        raise "#{problem} of #{kind} #{n}: #{inspect(all)} is more than #{inspect(expected)}"
      end
    end

    count = max(div(2_000_000, n * n * n), 1)

    [us, them] =
      Bench.medians(@rounds, fn ->
        us = Bench.time(fn -> call(problem, m) end, count) / count
        [us, Bench.peer_time(peer, @calls[problem], count) / count]
      end)

    name = String.pad_trailing("#{problem} of #{kind} #{n} #{type}", 29)

    :io.format("~s~10.1f  ~10.1f  ~10.1f  ~10.1f  ~6.2f~n", [
      name,
      ours,
      hd(expected),
      us * 1.0e6,
      them * 1.0e6,
      them / us
    ])
  end

  defp number(peer, expression) do
    {number, ""} = Float.parse(Bench.value(peer, expression))
    number
  end

  defp call(:solve, m), do: Nx.LinAlg.solve(m.a, m.b)
  defp call(:cholesky, m), do: Nx.LinAlg.cholesky(m.p)
  defp call(:eigh, m), do: Nx.LinAlg.eigh(m.s)
  defp call(:triangular_solve, m), do: Nx.LinAlg.triangular_solve(m.t, m.b)
  defp call(:invert, m), do: Nx.LinAlg.invert(m.d)
  defp call(:determinant, m), do: Nx.LinAlg.determinant(m.d)
  defp call(problem, m), do: apply(Nx.LinAlg, problem, [m.a])

  defp residuals(:cholesky, l, m), do: [distance(dot(l, t(l)), m.p)]
  defp residuals(:lu, {p, l, u}, m), do: [distance(p |> dot(l) |> dot(u), m.a)]
  defp residuals(:qr, {q, r}, m), do: [distance(dot(q, r), m.a), orthogonal(q)]

  defp residuals(:solve, x, m) do
    rest = Nx.subtract(dot(m.a, x), wide(m.b))
    [norm(rest) / (norm(wide(m.a)) * norm(wide(x)))]
  end

  defp residuals(:triangular_solve, x, m) do
    a = wide(m.t)
    rest = Nx.subtract(dot(a, x), wide(m.b))
    [norm(rest) / (norm(a) * norm(wide(x)))]
  end

  defp residuals(:invert, x, m) do
    rest = Nx.subtract(dot(m.d, x), Nx.eye(Nx.shape(x), type: :f64))
    [norm(rest) / (norm(wide(m.d)) * norm(wide(x)))]
  end

  # Of a matrix of f32 beside the same in f64.
  defp residuals(:determinant, x, m) do
    y = Nx.LinAlg.determinant(wide(m.d))
    [Nx.to_number(Nx.divide(Nx.abs(Nx.subtract(wide(x), y)), Nx.abs(y)))]
  end

  defp residuals(:eigh, {w, v}, m) do
    rest = Nx.subtract(dot(m.s, v), Nx.multiply(wide(v), wide(w)))
    [norm(rest) / norm(wide(m.s)), orthogonal(v)]
  end

  defp residuals(:svd, {u, s, vt}, m),
    do: [distance(dot(Nx.multiply(wide(u), wide(s)), vt), m.a), orthogonal(u), orthogonal(t(vt))]

  defp orthogonal(q) do
    gram = dot(t(q), q)
    norm(Nx.subtract(gram, Nx.eye(Nx.shape(gram), type: :f64)))
  end

  defp distance(a, b), do: norm(Nx.subtract(a, wide(b))) / norm(wide(b))
  defp norm(a), do: a |> Nx.multiply(a) |> Nx.sum() |> Nx.sqrt() |> Nx.to_number()
  defp dot(a, b), do: Nx.dot(wide(a), wide(b))
  defp wide(a), do: Nx.as_type(a, :f64)
  defp t(a), do: Nx.transpose(a)
end

Bench.LinAlg.run()
