/** Set by the bundler where the client's commands are packed without the server (bin/bundle-program.mjs). */
declare const SLUICE_PROGRAM: string | undefined

/** How the program is called that these commands belong to: `sluice` or `sluice-client`. */
export const program = typeof SLUICE_PROGRAM === 'undefined' ? 'sluice' : SLUICE_PROGRAM
