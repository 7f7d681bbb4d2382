/** Adds up processor time of the whole process, microseconds. */
export class Spent {
  us = 0

  of<Result>(act: () => Result): Result {
    const before = process.cpuUsage()
    const result = act()
    this.#add(before)
    return result
  }

  async during(act: () => Promise<unknown>): Promise<void> {
    const before = process.cpuUsage()
    await act()
    this.#add(before)
  }

  #add(before: NodeJS.CpuUsage): void {
    const { user, system } = process.cpuUsage(before)
    this.us += user + system
  }
}

/** The most memory that this process had, MiB. */
export function memoryMiB(): number {
  return Math.round(process.resourceUsage().maxRSS / 1024)
}
