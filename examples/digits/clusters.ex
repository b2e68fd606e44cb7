defmodule Digits.Clusters do
  @moduledoc """
  Principal components and clusters of the digits, found by Scholar without knowing what
  they show. Nothing here names a backend or a compiler.
  """

  alias Scholar.Cluster.KMeans
  alias Scholar.Decomposition.PCA

  @doc "Digits as a tensor of shape `{n, 64}`, from 0 to 1."
  def tensor(digits) do
    {images, _labels} = Digits.Data.tensors(digits)
    images |> Ferrox.to_nx() |> Nx.divide(16)
  end

  @doc """
  The first two principal components: `{points, share}`, a point for each digit, and the
  share of the variance that they have.
  """
  def components(tensor) do
    pca = PCA.fit(tensor, num_components: 2)
    [xs, ys] = pca |> PCA.transform(tensor) |> Nx.transpose() |> Nx.to_list()
    {Enum.zip(xs, ys), pca.explained_variance_ratio |> Nx.sum() |> Nx.to_number()}
  end

  @doc "So many clusters, the best of ten runs: `{cluster of each digit, iterations}`."
  def k_means(tensor, clusters) do
    key = Nx.Random.key(1)
    model = KMeans.fit(tensor, num_clusters: clusters, num_runs: 10, key: key)
    {Nx.to_list(model.labels), Nx.to_number(model.num_iterations)}
  end

  @doc """
  What the members of each cluster show: `{cluster, size, [{digit, count}]}`, the most
  frequent digit first.
  """
  def table(members, labels) do
    Enum.zip(members, labels)
    |> Enum.group_by(&elem(&1, 0), &elem(&1, 1))
    |> Enum.sort()
    |> Enum.map(fn {cluster, labels} ->
      counts = labels |> Enum.frequencies() |> Enum.sort_by(fn {digit, n} -> {-n, digit} end)
      {cluster, length(labels), counts}
    end)
  end
end
