// Made by netctrl export ns3: do not edit.
// The law of senders with its gains; it stands in netctrl-window-law.h.

#ifndef NETCTRL_GAINS_H
#define NETCTRL_GAINS_H

#include "netctrl-fabric-tables.h"

namespace netctrl
{

/// How this export was made, as JSON.
inline constexpr const char* kProvenance = "{\"netctrl\": \"0.1.0\", \"git_revision\": null, \"argv\": [], \"seed\": 1, \"input_hashes\": {}, \"python\": \"3.11\", \"libraries\": {}}";

/// Why the gains can be trusted: the certificate of the Design.
namespace design
{
inline constexpr const char* kStatus = "admissible";
inline constexpr double kFlows = 4.0; ///< N that the numbers below are for
inline constexpr double kGain = 0.2500860570320517; ///< K: bytes of window for a byte of queue
inline constexpr double kFairWindow = 937.5; ///< c [byte]
inline constexpr double kB = 1.3344768; ///< bytes of queue for a byte of all windows, an interval
inline constexpr double kInterval = 1.0008576e-05; ///< from one acknowledgement to the next [s]
inline constexpr double kClosedLoopPole = 0.6662659588872502; ///< 1 - B K, without the round trip
inline constexpr double kSpectralRadius = 0.6662659588872502; ///< with it, where a queue stands; 1 or more: it swings
inline constexpr double kDelaySteps = 3.0; ///< of the round trip [acknowledgement]
inline constexpr double kGainMargin = 2.7780819094480895;
inline constexpr double kDiskMargin = 0.9046963893598923;
inline constexpr double kPhase = 48.67906377593123; ///< [degree]
inline constexpr double kProgramDifference = 0.0; ///< from the quadratic program's window, largest, over P_BD
inline constexpr double kFeasibleQueue = 12501.072; ///< [byte]: beyond, the window is least
inline constexpr double kSettling = 2.016; ///< of a burst of P_BD [round trip]
inline constexpr double kUtilization = 1.0; ///< at the fair window
// warning: "the fair window, 937.5 bytes, is less than a packet: a sender whose window is clocked by packets sends more"
inline constexpr const char* kProvenance = "{\"netctrl\": \"0.1.0\", \"git_revision\": null, \"argv\": [], \"seed\": 1, \"input_hashes\": {}, \"python\": \"3.11\", \"libraries\": {}}";
} // namespace design

/// The senders' law.
inline const Law kLaw = {
    1.0, // variant: 0: delay-free; 1: on the queue that (3.7) predicts; 2: K = 0; 3: holds its window while queues are empty
    1080.0, // packet: Of (A.1) [byte]
    3750.0, // given_window: W of (A.1), with K by number of flows in a table; 0: the flow's own, without [byte]
    5.0, // horizon: P [acknowledgement]
    1.0, // queue_weight: W_Q
    10.0, // window_weight: W_R
};

inline constexpr std::size_t kMemory = 3; ///< numbers that it keeps besides its state

/// base_rtt Round trip without queues [ns], bdp The round trip in bytes at line rate, line_rate The sender's [bit/s], hops Switch ports on it, rates Theirs [bit/s]; line rate and first window of senders;
/// what the law looks up.
inline const std::vector<PathRow> kPaths = {
    {{34752.0, 3750.0, 1000000000.0, 2.0, {1000000000.0, 1000000000.0, 0.0, 0.0, 0.0}}, 1000000000.0, 3750.0,
     {
      0.14882539777497128, 0.14882539777497128, 0.2275437971755616, 0.2507422230436543, 0.2500860570320517, 0.24153524872407875, 0.23090168677445075, 0.22009256660030488,
      0.20970209918476748, 0.19989738364702964, 0.1907067001465787, 0.18211295394412633, 0.17408444552862995,
     }},
};

} // namespace netctrl

#endif // NETCTRL_GAINS_H
