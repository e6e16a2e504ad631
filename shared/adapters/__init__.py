"""AWS behind the ports: the only place where boto3 is imported, and no botocore exception leaves it."""
