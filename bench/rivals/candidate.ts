import type { Child } from '../kit/child.js'

/** A server under load. */
export interface Candidate {
  readonly name: string
  /** `ours`; a rival, to which the ratio is made; or a part of ours, only shown. */
  readonly role: 'ours' | 'rival' | 'part'
  readonly port: number
  readonly pid: number
  /** The program behind it, whose processor time and memory are counted, too. */
  readonly behindPid?: number
  /** It speaks TLS on its port. */
  readonly speaksTls?: boolean
  stop(): Promise<void>
}

export function candidate(
  name: string,
  role: Candidate['role'],
  port: number,
  { pid, stop }: Child,
): Candidate {
  return { name, role, port, pid, stop }
}

/** Stops all of them, also where stopping one fails. */
export async function stopAll(candidates: readonly Candidate[]): Promise<void> {
  await Promise.allSettled(candidates.map((each) => each.stop()))
}
