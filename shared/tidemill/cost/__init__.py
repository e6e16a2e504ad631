"""What jobs and a stage cost by AWS's list prices. Pure: it calls no AWS, and no function of a stack imports it."""
