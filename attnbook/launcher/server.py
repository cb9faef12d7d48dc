"""What the book changes in the Jupyter server that `python -m attnbook` starts.

It is a server extension, switched on by the files in `config/`, rather than a pair of settings,
so that a reader's own pre-save hook and choice of connection stay in force beside it.
"""

import logging
from pathlib import Path
from typing import Any

import nbformat
import zmq
from jupyter_client.manager import KernelManager
from tornado.log import gen_log

from attnbook.launcher import working_copy

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
# How it begins what it says of Jupyter's own settings; see `hush`.
TOLD_BY_TORNADO = "The websocket_ping_timeout "


def without_widget_views(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return a notebook without the views and the state of its widgets.

    A saved view has no widget behind it when the notebook is opened again, and JupyterLab would
    show an error in place of the sentence that stands beside it in the same output.

    Parameters
    ----------
    notebook : dict
        A notebook of format 4; it is not modified.

    Returns
    -------
    dict
        The same notebook, its outputs without widget views, its metadata without widget state.

    Examples
    --------
    >>> data = {WIDGET_VIEW: {"model_id": "1"}, "text/plain": "Run the cell to move the sliders."}
    >>> cell = {"cell_type": "code", "outputs": [{"output_type": "display_data", "data": data}]}
    >>> without_widget_views({"cells": [cell], "metadata": {}})["cells"][0]["outputs"][0]["data"]
    {'text/plain': 'Run the cell to move the sliders.'}
    """

    def clean(output: dict[str, Any]) -> dict[str, Any]:
        if WIDGET_VIEW not in output.get("data", {}):
            return output
        kept = {mime: value for mime, value in output["data"].items() if mime != WIDGET_VIEW}
        return output | {"data": kept}

    cells = [
        cell | {"outputs": [clean(output) for output in cell["outputs"]]}
        if "outputs" in cell
        else cell
        for cell in notebook["cells"]
    ]
    metadata = {key: value for key, value in notebook["metadata"].items() if key != "widgets"}
    return notebook | {"cells": cells, "metadata": metadata}


def strip_on_save(model: dict[str, Any], **_: Any) -> None:
    """Strip the widget views from a notebook that is about to be saved (a pre-save hook).

    The page that sent it keeps its live sliders: only the content for the file is replaced.

    Parameters
    ----------
    model : dict
        What the page sent to be saved, with `type` and `content`.

    Examples
    --------
    >>> model = {"type": "file", "content": "any text"}
    >>> strip_on_save(model)
    >>> model["content"]
    'any text'
    """
    if model.get("type") == "notebook" and "cells" in model["content"]:
        model["content"] = without_widget_views(model["content"])


def sending_at_once(connection: type) -> type:
    """Extend a class of kernel connections so that it sends every message at once.

    Jupyter leaves TCP's collecting of small messages on, which holds back every fifth move of a
    slider by about 35 ms.

    Parameters
    ----------
    connection : type
        The server's class of connections between a page and a kernel.

    Returns
    -------
    type
        A subclass that switches TCP_NODELAY on when the connection is opened.

    Examples
    --------
    >>> class Connection: ...
    >>> issubclass(sending_at_once(Connection), Connection)
    True
    """

    class SendingAtOnce(connection):
        async def connect(self) -> None:
            self.websocket_handler.set_nodelay(True)
            await super().connect()

    return SendingAtOnce


def trust_the_book(notary: Any, project: Path) -> None:
    """Sign the chapters of the working copy that the reader has not changed.

    JupyterLab shows the sharper SVG form of a picture in trusted notebooks alone. What the
    reader runs, JupyterLab signs itself.

    Parameters
    ----------
    notary : NotebookNotary
        The server's keeper of signatures.
    project : Path
        The folder that holds `notebooks/` and `my_book/`.

    Examples
    --------
    >>> trust_the_book(notary=None, project=Path("nowhere"))
    """
    for chapter in working_copy.untouched(project):
        notary.sign(nbformat.read(chapter, as_version=4))


def tell_address(serverapp: Any) -> None:
    """Print where the book is, once it is served, unless Jupyter does.

    Jupyter prints the address at the quiet log level of the book only together with a token
    that it made; a reader with a token or a password of their own would not learn the port.

    Parameters
    ----------
    serverapp : ServerApp
        The server, already listening.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> provider = SimpleNamespace(token="mine", token_generated=False)
    >>> tell_address(SimpleNamespace(identity_provider=provider, display_url="http://here/lab"))
    attnbook: the book is open at http://here/lab
    """
    provider = serverapp.identity_provider
    if not (provider.token and provider.token_generated):
        print(f"attnbook: the book is open at {serverapp.display_url}", flush=True)


def encrypt(config: Any) -> None:
    """Let the server and its kernels encrypt what they tell each other, where both can.

    Kernels that are asked not to, which is Jupyter's default, warn of eavesdroppers in the
    terminal, once for each chapter that is opened.

    Parameters
    ----------
    config : Config
        The server's configuration; what the reader set there stays.

    Examples
    --------
    >>> from traitlets.config import Config
    >>> config = Config({"KernelManager": {"transport_encryption": "required"}})
    >>> encrypt(config)
    >>> config.KernelManager.transport_encryption
    'required'
    """
    if "transport_encryption" in KernelManager.class_trait_names() and zmq.has("curve"):
        config.KernelManager.setdefault("transport_encryption", "auto")


def hush(record: logging.LogRecord) -> bool:
    """Return False for what Tornado says of the time that a connection may be silent.

    Jupyter keeps that time itself, in milliseconds: a connection is given up if no answer came for
    three pings. Tornado, which knows seconds, reads the same settings and warns in every terminal
    that the answer to a ping may not take longer than the time between two. To give it what it
    asks for would make Jupyter close every connection at the first ping.

    Parameters
    ----------
    record : LogRecord

    Returns
    -------
    bool
        Whether the record is to be told.

    Examples
    --------
    >>> hush(logging.makeLogRecord({"msg": "The websocket_ping_timeout (9) cannot be longer"}))
    False
    >>> hush(logging.makeLogRecord({"msg": "WebSocket ping timeout after 90000 ms."}))
    True
    """
    return not record.getMessage().startswith(TOLD_BY_TORNADO)


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(serverapp: Any) -> None:
    serverapp.contents_manager.register_pre_save_hook(strip_on_save)
    settings = serverapp.web_app.settings
    connection = settings.get("kernel_websocket_connection_class")
    # Servers that keep this class elsewhere do without the comfort.
    if isinstance(connection, type):
        settings["kernel_websocket_connection_class"] = sending_at_once(connection)
    gen_log.addFilter(hush)
    encrypt(serverapp.config)
    trust_the_book(serverapp.contents_manager.notary, working_copy.BOOK)
    serverapp.io_loop.add_callback(tell_address, serverapp)
