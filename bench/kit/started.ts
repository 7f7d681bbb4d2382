import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { sluiceWords } from './folders.js'

/** The program, whose output is read here. */
export type Started = ChildProcessByStdio<null, Readable, null>

/** Starts the program on a data folder, on free ports; two edge threads and an empty chain unless `settings` say otherwise. */
export function startProgram(folder: string, settings: Readonly<Record<string, string>> = {}): Started {
  return spawn(process.execPath, [...sluiceWords, 'start'], {
    env: {
      PATH: process.env.PATH ?? '',
      PORT: '0',
      DEVNET_PORT: '0',
      DATA_PATH: folder,
      EDGE_THREADS: '2',
      DEVNET_SEED: 'false',
      ...settings,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

/** Waits for its line `ready`. */
export async function readyProgram(child: Started): Promise<void> {
  for await (const line of createInterface({ input: child.stdout })) if (line.includes('"msg":"ready"')) break
}
