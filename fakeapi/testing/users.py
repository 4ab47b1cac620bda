"""Users of a cluster other than the administrator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from fakeapi.apiserver.serving.client_access import copy_kubeconfig


@dataclass(frozen=True, slots=True)
class UserAccess:
    """A user's bearer token, and the kubeconfig with it."""

    name: str
    token: str
    kubeconfig_path: Path


def user_access(admin: Path, name: str, issue: Callable[[], str]) -> UserAccess:
    """Return the access of a user, beside the administrator's kubeconfig.

    ``issue`` returns the user's token. Raise ValueError if the server has no TLS.
    """
    path = admin.with_name(f"kubeconfig-{quote(name, safe='')}")
    token = issue()
    return UserAccess(name, token, copy_kubeconfig(admin, path, token=token))
