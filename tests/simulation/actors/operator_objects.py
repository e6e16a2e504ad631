"""What the commands of operators work with. Call these from a task: its process has the settings of the deployment."""

from tidemill import composition
from tidemill.application.configuration import Configurator
from tidemill.application.control.purge import Purger
from tidemill.application.control.redrive import Redriver
from tidemill.aws import clients
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.names import Env
from tidemill.settings import setting
from tidemill.system import clock, ids


def configurator() -> Configurator:
    store = DynamoConfiguration(clients.dynamodb(), table=setting(Env.JOBS_TABLE))
    return Configurator(store=store, clock=clock.now)


def purger() -> Purger:
    return Purger(store=composition.parts().store, clock=clock.now)


def redriver() -> Redriver:
    return Redriver(store=composition.parts().store, clock=clock.now, new_token=ids.new_token)
