"""How a feature gives a submitted job its place, such as in a group, a batch or a burst."""

from tidemill.application.submission.checked_submission import CheckedSubmission
from tidemill.application.submission.new_jobs import Accepted
from tidemill.domain.errors import Fault
from tidemill.domain.job import Job
from tidemill.domain.submission.submission import Submission


class Placement:
    """One kind of place. Its rule is in `submit_features`, with those of the other members of a submission."""

    def place(self, job: Job, _checked: CheckedSubmission) -> Job:
        """The job with the members that this place gives it, if its submission asks for that."""
        return job

    def holds(self, _job: Job) -> bool:
        """Whether the job has such a place, so that `serial_key` and `insert` are for it."""
        return False

    def serial_key(self, _job: Job) -> str | None:
        """Submissions that share it are inserted in their order. None: the order does not matter."""
        return None

    def follow_up_fault(self, _submission: Submission) -> Fault | None:
        """Why a job that commits with the success of another one cannot have this place."""
        return None

    def insert(self, job: Job) -> Accepted:
        """Insert the job in its place; as `Submit.insert`. The first placement that holds the job does it."""
        raise NotImplementedError
