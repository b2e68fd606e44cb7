defmodule Digits.Requests do
  @moduledoc "Requests of many processes at once, each for one picture, and their times."

  alias Digits.Reader

  @doc """
  Lets that many processes read pictures, one after the other, for some seconds:
  `{begin, time, outcome}` of each request, in microseconds, the begin being
  `System.monotonic_time/1`.

  An outcome is the node that has read the picture rightly, `:wrong`, or
  `{:error, reason}`. Pictures are `{pixels, digit}`, the digit being what the model
  reads here.
  """
  def run(pictures, processes, seconds) do
    pictures = List.to_tuple(pictures)
    stop = now() + round(seconds * 1_000_000)

    1..processes
    |> Enum.map(&Task.async(fn -> requests(pictures, &1, stop) end))
    |> Task.await_many(round(seconds * 1_000) + 30_000)
    |> Enum.concat()
  end

  defp requests(pictures, index, stop) do
    begin = now()

    if begin >= stop do
      []
    else
      {pixels, digit} = elem(pictures, rem(index, tuple_size(pictures)))
      answer = Reader.read([pixels])
      time = now() - begin
      [{begin, time, outcome(answer, digit)} | requests(pictures, index + 1, stop)]
    end
  end

  defp outcome({:ok, {node, tensor}}, digit),
    do: if(Nx.to_flat_list(tensor) == [digit], do: node, else: :wrong)

  defp outcome({:error, reason}, _digit), do: {:error, reason}

  defp now, do: System.monotonic_time(:microsecond)

  @doc "The time below which that share of the requests were answered."
  def percentile(requests, share) do
    times = for {_begin, time, _outcome} <- requests, do: time
    times |> Enum.sort() |> Enum.at(ceil(length(times) * share) - 1)
  end
end
