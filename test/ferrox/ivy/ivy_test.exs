defmodule Ferrox.IvyTest do
  use ExUnit.Case, async: true

  doctest Ferrox.Ivy
  doctest Ferrox.Ivy.Dtype
  doctest Ferrox.Ivy.Profile
  doctest Ferrox.Ivy.Default
  doctest Ferrox.Ivy.Version
  doctest Ferrox.Ivy.Kernels
  doctest Ferrox.Ivy.Support
  doctest Ferrox.Ivy.Casting
  doctest Ferrox.Ivy.Functions
end
