# The right credentials at the wrong door.
story "The other region of the vault" {
  told = "The vault has two regions with two addresses. Good credentials sent to the other one get a 401, and an afternoon went into renewing what was not expired."
  from = ["D 14"]

  run "up" {
    break = ["infisical: answers 401 on POST /login"]
    exit  = 1
    says  = ["https://eu.infisical.com refuses the login (401)", "is this its host? US and EU are separate worlds"]
    fails = ["secrets/read: denied"]
  }
  world {
    nothing_left = true
  }
}
