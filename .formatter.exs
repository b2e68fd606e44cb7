[
  inputs: [
    "{mix,.formatter}.exs",
    "{bench,config,examples,lib,test}/**/*.{ex,exs}"
  ]
]
