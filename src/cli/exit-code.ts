/** With which code a command ends, so that scripts can tell the reasons apart. `sluice --help` lists them. */
export const exitCode = {
  done: 0,
  /** Something went wrong that none of the others names. */
  failed: 1,
  /** Wrong words on the command line, or wrong settings. */
  usage: 2,
  /** What was requested does not exist. */
  notFound: 3,
  /** A check came to a negative result: bytes, a signature or an index are not what they should be. */
  untrue: 4,
  /** A server that was needed did not answer. */
  unreachable: 5,
  /** The folder was uploaded and is served by its id, but the name was not set. */
  unnamed: 6,
} as const
