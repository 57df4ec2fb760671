"""What infisicalsdk, a client that nobody here wrote, gets from an Infisical. Arguments: address, project's slug and id."""
import json
import os
import sys

from infisical_sdk import InfisicalSDKClient
from infisical_sdk.infisical_requests import APIError

address, slug, project = sys.argv[1:]
there = {"project_id": project, "environment_slug": "dev"}


def tell(what, value):
    print(json.dumps({"what": what, "value": value}, sort_keys=True), flush=True)


def refused(call):
    try:
        return {"value": str(call())}
    except APIError as error:
        return {"status": error.status_code, "error": error.response.get("error"), "text": error.response.get("message")}


def shown(secret):
    return [secret.secretKey, secret.secretValue, secret.version, secret.secretComment]


client = InfisicalSDKClient(host=address, cache_ttl=None)
tell("no token", refused(lambda: client.secrets.list_secrets(secret_path="/", **there)))
login = client.auth.universal_auth.login(client_id=os.environ["CLIENT_ID"], client_secret=os.environ["CLIENT_SECRET"])
tell("login", [login.tokenType, login.expiresIn, login.accessTokenMaxTTL])
folder = client.folders.create_folder(name="blue", path="/sdk", project_id=project, environment_slug="dev")
tell("folder", [folder.name, folder.path])
tell("folders", [f.name for f in client.folders.list_folders(path="/sdk", **there).folders])
tell("folder again", refused(lambda: client.folders.create_folder(name="blue", path="/sdk", **there)))
tell("folder with a dot", refused(lambda: client.folders.create_folder(name="blue.lan", path="/sdk", **there))["status"])
secrets = client.secrets
made = secrets.create_secret_by_name(secret_name="TOKEN", secret_path="/sdk/blue", secret_value="  käse: 1\n\n",
                                     secret_comment="by the sdk", **there)
tell("created", [made.secretKey, made.secretValue, made.version])
tell("created again", refused(lambda: secrets.create_secret_by_name(secret_name="TOKEN", secret_path="/sdk/blue",
                                                                    secret_value="x", **there)))
secrets.create_secret_by_name(secret_name="REFERS", secret_path="/sdk/blue", secret_value="<${TOKEN}>", **there)
tell("listed", [shown(s) for s in secrets.list_secrets(secret_path="/sdk/blue", **there).secrets])
tell("as written", [s.secretValue for s in secrets.list_secrets(secret_path="/sdk/blue", expand_secret_references=False,
                                                               **there).secrets])
tell("hidden", [s.secretValue for s in secrets.list_secrets(secret_path="/sdk/blue", view_secret_value=False, **there).secrets])
tell("by slug", len(secrets.list_secrets(secret_path="/sdk/blue", environment_slug="dev", project_slug=slug).secrets))
changed = secrets.update_secret_by_name(current_secret_name="TOKEN", secret_path="/sdk/blue", secret_value="2", **there)
tell("updated", [changed.secretValue, changed.version])
tell("got", shown(secrets.get_secret_by_name(secret_name="TOKEN", secret_path="/sdk/blue", **there)))
tell("first version", secrets.get_secret_by_name(secret_name="TOKEN", secret_path="/sdk/blue", version="1", **there).secretValue)
tell("not there", refused(lambda: secrets.get_secret_by_name(secret_name="NOPE", secret_path="/sdk/blue", **there)))
tell("no such folder", refused(lambda: secrets.list_secrets(secret_path="/no/such", **there)))
tell("deleted", secrets.delete_secret_by_name(secret_name="TOKEN", secret_path="/sdk/blue", **there).secretKey)
tell("deleted again", refused(lambda: secrets.delete_secret_by_name(secret_name="TOKEN", secret_path="/sdk/blue", **there)))
reader = InfisicalSDKClient(host=address, cache_ttl=None)
reader.auth.universal_auth.login(client_id=os.environ["READER_ID"], client_secret=os.environ["READER_SECRET"])
tell("a reader reads", [s.secretKey for s in reader.secrets.list_secrets(secret_path="/sdk/blue", **there).secrets])
tell("a reader writes", refused(lambda: reader.secrets.create_secret_by_name(secret_name="X", secret_path="/sdk/blue",
                                                                            secret_value="x", **there)))
stranger = InfisicalSDKClient(host=address, cache_ttl=None)
wrong = lambda: stranger.auth.universal_auth.login(client_id=os.environ["READER_ID"], client_secret="wrong")
tell("wrong secret", [refused(wrong)["text"] for _ in range(4)])
