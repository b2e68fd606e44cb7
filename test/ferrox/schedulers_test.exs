defmodule Ferrox.SchedulersTest do
  # Operations while the number of schedulers changes, in a VM of its own.
  use ExUnit.Case, async: true

  alias Ferrox.{ChildVM, Schedulers}

  test "answers are right while schedulers come and go" do
    {output, status} = ChildVM.run("#{inspect(Schedulers)}.main()", flags: "+S 4:4 +SDcpu 4:4")
    assert {status, output} == {0, "as before\n"}
  end
end
