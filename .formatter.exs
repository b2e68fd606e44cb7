[
  inputs: [
    "{mix,.formatter}.exs",
    "native/*.exs",
    "{bench,config,examples,lib,test}/**/*.{ex,exs}"
  ]
]
