exclude =
  if Code.ensure_loaded?(Nx) do
    {:ok, _} = Application.ensure_all_started(:nx)
    []
  else
    IO.puts("Nx isn't on the code path: the tests tagged :nx are left out")
    [:nx]
  end

ExUnit.start(exclude: exclude)
