"""Takes the socket for calls, which the server hands over as the standard output, before anything is imported that may
print; what the process prints goes from then on where its errors go."""

import os
import stat

# The socket's descriptor; None where the worker was started without one.
CALLS = None
if stat.S_ISSOCK(os.fstat(1).st_mode):
    CALLS = os.dup(1)
    os.dup2(2, 1)
