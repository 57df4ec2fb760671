# The token of the repository is another one.
story "A repository that does not know us" {
  told = "The token of the repository had been renewed, and only Flux found out: an hour after the castle had been called finished, nothing had been delivered."
  from = ["nobody's diary"]

  meanwhile {
    poke = ["git: token changed"]
  }
  run "up" {
    exit  = 1
    says  = ["the token may not read the repository"]
    fails = ["gitops/repository: denied"]
  }
  world {
    guests      = []
    vault_lacks = ["TALOS_SECRETS_BUNDLE"]
  }
  run "down" {}
  world {
    nothing_left = true
  }
}
