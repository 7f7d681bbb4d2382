/** One command: takes the words behind its name on the command line, resolves with the exit code. */
export type Command = (words: readonly string[]) => Promise<number>

/** Wrong usage of the command line. */
export class WrongWords extends Error {}
