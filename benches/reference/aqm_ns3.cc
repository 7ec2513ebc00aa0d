// TCP flows through a queue discipline in ns-3, for aqm_ns3.csv: `aqm.sh` runs all of it.
//
//   aqm_ns3 discipline=codel variant=TcpNewReno flows=4 seed=1 [own=device|pipe|recovery|clamp]
//   aqm_ns3 discipline=fq-codel flows=2 seed=1 mbps=4 delay_ms=50 jitter_ms=3     (for aqm_phase_ns3.csv)
//   aqm_ns3 discipline=step variant=TcpDctcp flows=4 seed=1 mbps=50 threshold_ms=10   (for dctcp_ns3.csv)
//
// Prints one CSV line: what of the flows arrived (Mb/s of payload, `;` between flows), how long packets waited in the
// discipline (ms), how many it dropped, and how many it let go (and how many of these it marked), from second 10 to second 70.
//
// 10 Mb/s, 20 ms each way by default. Packets are 1500 bytes on the wire: 1446 of payload, 12 timestamps, 20 TCP, 20 IP, 2 PPP.
// Four things of ns-3.37 are put aside, and `own` leaves one of them as it is:
//   device    the discipline feeds a device queue of one packet, so that a packet waits there while another is sent; without
//             it the discipline hands out a packet when the transmitter is free
//   pipe      NewReno halves what RFC 6675 calls pipe; RFC 5681 equation 4 halves FlightSize, all that is not acknowledged
//   recovery  the window falls in proportion to what arrives (PRR), where RFC 6675 has it fall at once
//   clamp     after a time-out CUBIC grows by a segment for each 20 ACKs at least, which RFC 9438 has not
// Every segment is acknowledged: with delayed ACKs ns-3's NewReno, which counts ACKs and not bytes, grows half as fast.
// Both algorithms have SACK; without it (`sack=0`) ns-3's NewReno recovers from several losses in a window very slowly.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdio>
#include <iostream>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

using namespace ns3;

namespace {

constexpr uint32_t PAYLOAD = 1446;
constexpr uint16_t PORT = 5000;
constexpr double FROM = 10, TO = 70;

// ns-3.37's CUBIC with two things that it lacks.
//
// In slow start it adds all that an ACK acknowledges to the window, also beyond ssthresh: after a time-out by hundreds of
// segments. RFC 5681 section 3.1 ends slow start there. And it has no Reno-friendly region (RFC 9438 section 4.3), in
// which CUBIC is wherever the product of rate and round trip is as small as here; `friendly=0` leaves that out.
class NearerCubic : public TcpCubic
{
  public:
    static bool friendly;

    static TypeId GetTypeId()
    {
        static TypeId tid =
            TypeId("ns3::NearerCubic").SetParent<TcpCubic>().SetGroupName("Internet").AddConstructor<NearerCubic>();
        return tid;
    }

    void IncreaseWindow(Ptr<TcpSocketState> tcb, uint32_t segmentsAcked) override
    {
        const double segment = tcb->m_segmentSize, window = tcb->m_cWnd / segment;
        const bool slow = tcb->m_cWnd < tcb->m_ssThresh;
        TcpCubic::IncreaseWindow(tcb, segmentsAcked);
        if (slow)
        {
            tcb->m_cWnd = std::min(tcb->m_cWnd.Get(), tcb->m_ssThresh.Get());
            m_reno = 0;
            return;
        }
        // equation 4; above the window of the last loss it grows as Reno does
        m_reno = m_reno > 0 ? m_reno : window;
        m_reno += (m_reno >= m_prior ? 1 : 3 * (1 - 0.7) / (1 + 0.7)) * segmentsAcked / window;
        if (friendly && m_reno * segment > tcb->m_cWnd)
        {
            tcb->m_cWnd = static_cast<uint32_t>(m_reno * segment);
        }
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> tcb, uint32_t bytesInFlight) override
    {
        m_prior = double(tcb->m_cWnd) / tcb->m_segmentSize;
        m_reno = 0;
        return TcpCubic::GetSsThresh(tcb, bytesInFlight);
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<NearerCubic>(this);
    }

  private:
    double m_reno = 0, m_prior = 0;
};

bool NearerCubic::friendly = true;

NS_OBJECT_ENSURE_REGISTERED(NearerCubic);

// ns-3.37's NewReno, which halves FlightSize (RFC 5681 equation 4).
class NearerReno : public TcpNewReno
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid =
            TypeId("ns3::NearerReno").SetParent<TcpNewReno>().SetGroupName("Internet").AddConstructor<NearerReno>();
        return tid;
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> tcb, uint32_t) override
    {
        const uint32_t flight = tcb->m_highTxMark.Get() - tcb->m_lastAckedSeq;
        return std::max(2 * tcb->m_segmentSize, std::min(flight, tcb->m_cWnd.Get()) / 2);
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<NearerReno>(this);
    }
};

NS_OBJECT_ENSURE_REGISTERED(NearerReno);

// The device's transmitter, of which the discipline is told when it is free.
Ptr<NetDeviceQueue> transmitter;

void Begins(Ptr<const Packet>)
{
    transmitter->Stop();
}

void Ends(Ptr<const Packet>)
{
    Simulator::ScheduleNow(&NetDeviceQueue::Wake, transmitter);
}

struct Counts
{
    std::unordered_map<uint64_t, Time> since;
    double waited = 0;
    uint64_t gone = 0, dropped = 0, marked = 0;

    static bool Counted()
    {
        return Simulator::Now() >= Seconds(FROM);
    }

    void Enqueued(Ptr<const QueueDiscItem> item)
    {
        since[item->GetPacket()->GetUid()] = Simulator::Now();
    }

    void Dropped(Ptr<const QueueDiscItem> item)
    {
        since.erase(item->GetPacket()->GetUid());
        dropped += Counted();
    }

    void Marked(Ptr<const QueueDiscItem>, const char*)
    {
        marked += Counted();
    }

    // The device takes it: it has left the discipline, and was not dropped there.
    void Left(Ptr<const Packet> packet)
    {
        const auto found = since.find(packet->GetUid());
        if (found == since.end())
        {
            return;
        }
        if (Counted())
        {
            waited += (Simulator::Now() - found->second).GetSeconds();
            gone++;
        }
        since.erase(found);
    }
};

void SetUp(const std::string& discipline, double thresholdMs, TrafficControlHelper& control)
{
    if (discipline == "codel")
    {
        control.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", StringValue("1000p"), "MinBytes",
                                 UintegerValue(1500), "Interval", StringValue("100ms"), "Target", StringValue("5ms"));
    }
    else if (discipline == "step")
    {
        // a CoDel that never drops, and marks what has waited longer than the threshold
        control.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", StringValue("1000p"), "UseEcn", BooleanValue(true),
                                 "Target", StringValue("10s"), "CeThreshold",
                                 TimeValue(MicroSeconds(static_cast<uint64_t>(thresholdMs * 1e3))));
    }
    else if (discipline == "fq-codel")
    {
        control.SetRootQueueDisc("ns3::FqCoDelQueueDisc", "MaxSize", StringValue("10240p"), "Interval",
                                 StringValue("100ms"), "Target", StringValue("5ms"));
        Config::SetDefault("ns3::CoDelQueueDisc::MinBytes", UintegerValue(1500));
    }
    else if (discipline == "pie")
    {
        control.SetRootQueueDisc("ns3::PieQueueDisc", "MaxSize", StringValue("1000p"), "MeanPktSize",
                                 UintegerValue(1000), "QueueDelayReference", TimeValue(MilliSeconds(15)),
                                 "MaxBurstAllowance", TimeValue(MilliSeconds(150)), "UseDerandomization",
                                 BooleanValue(false), "UseCapDropAdjustment", BooleanValue(true));
    }
    else
    {
        std::cerr << "aqm_ns3: no such discipline: " << discipline << "\n";
        std::exit(2);
    }
}

NetDeviceContainer Join(Ptr<Node> a, Ptr<Node> b, double mbps, double delayMs, const char* queue)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(mbps * 1e6))));
    link.SetChannelAttribute("Delay", TimeValue(MicroSeconds(static_cast<uint64_t>(delayMs * 1e3))));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(queue));
    return link.Install(a, b);
}

// A link that holds each packet of its first end back by a time drawn from U(0, jitter), and keeps their order.
class JitteredChannel : public PointToPointChannel
{
  public:
    explicit JitteredChannel(double jitterMs)
        : m_jitterMs(jitterMs)
    {
    }

    bool TransmitStart(Ptr<const Packet> packet, Ptr<PointToPointNetDevice> from, Time takes) override
    {
        const Time now = Simulator::Now();
        if (from == GetPointToPointDevice(0))
        {
            m_last = std::max(m_last, now + takes + MicroSeconds(m_luck->GetInteger(0, m_jitterMs * 1e3)));
            takes = m_last - now;
        }
        return PointToPointChannel::TransmitStart(packet, from, takes);
    }

  private:
    double m_jitterMs;
    Time m_last;
    Ptr<UniformRandomVariable> m_luck = CreateObject<UniformRandomVariable>();
};

// A sender's link; with jitter its packets leave by luck.
NetDeviceContainer JoinSender(Ptr<Node> sender, Ptr<Node> router, double jitterMs)
{
    if (jitterMs <= 0)
    {
        return Join(sender, router, 1000, 0, "100000p");
    }
    const auto channel = Create<JitteredChannel>(jitterMs);
    NetDeviceContainer ends;
    for (const Ptr<Node>& node : {sender, router})
    {
        const auto device = CreateObjectWithAttributes<PointToPointNetDevice>("DataRate", StringValue("1Gbps"));
        device->SetAddress(Mac48Address::Allocate());
        device->SetQueue(CreateObjectWithAttributes<DropTailQueue<Packet>>("MaxSize", StringValue("100000p")));
        device->AggregateObject(CreateObject<NetDeviceQueueInterface>());
        node->AddDevice(device);
        ends.Add(device);
    }
    for (uint32_t i = 0; i < ends.GetN(); i++)
    {
        DynamicCast<PointToPointNetDevice>(ends.Get(i))->Attach(channel);
    }
    return ends;
}

} // namespace

int main(int argc, char** argv)
{
    std::map<std::string, std::string> settings{
        {"discipline", "codel"}, {"variant", "TcpNewReno"}, {"flows", "1"}, {"seed", "1"}, {"friendly", "1"}, {"sack", "1"},
        {"own", ""}, {"mbps", "10"}, {"delay_ms", "20"}, {"jitter_ms", ""}, {"threshold_ms", "10"}};
    for (int i = 1; i < argc; i++)
    {
        const std::string word = argv[i];
        const auto at = word.find('=');
        if (at == std::string::npos || settings.count(word.substr(0, at)) == 0)
        {
            std::cerr << "aqm_ns3: no such setting: " << word << "\n";
            return 2;
        }
        settings[word.substr(0, at)] = word.substr(at + 1);
    }
    NearerCubic::friendly = settings["friendly"] != "0";
    const bool cubic = settings["variant"] == "TcpCubic";
    const bool dctcp = settings["variant"] == "TcpDctcp";
    const uint32_t count = std::stoul(settings["flows"]);
    const std::string own = settings["own"], jitter = settings["jitter_ms"];
    const TypeId reno = own == "pipe" ? TcpNewReno::GetTypeId() : NearerReno::GetTypeId();
    const TypeId type = dctcp ? TcpDctcp::GetTypeId() : cubic ? NearerCubic::GetTypeId() : reno;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(type));
    const TypeId recovery = own == "recovery" ? TcpPrrRecovery::GetTypeId() : TcpClassicRecovery::GetTypeId();
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(recovery));
    Config::SetDefault("ns3::TcpCubic::CntClamp", UintegerValue(own == "clamp" ? 20 : 255));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(settings["sack"] != "0"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(PAYLOAD));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(100'000'000));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(100'000'000));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
    RngSeedManager::SetRun(std::stoul(settings["seed"]));

    NodeContainer routers(2), senders(count), receivers(count);
    InternetStackHelper stack;
    stack.Install(routers);
    stack.Install(senders);
    stack.Install(receivers);
    // a device queue of two never stops the discipline by itself
    NetDeviceContainer middle = Join(routers.Get(0), routers.Get(1), std::stod(settings["mbps"]), std::stod(settings["delay_ms"]),
                                     own == "device" ? "1p" : "2p");
    TrafficControlHelper control;
    SetUp(settings["discipline"], std::stod(settings["threshold_ms"]), control);
    Ptr<QueueDisc> queue = control.Install(middle.Get(0)).Get(0);
    Counts counts;
    queue->TraceConnectWithoutContext("Enqueue", MakeCallback(&Counts::Enqueued, &counts));
    queue->TraceConnectWithoutContext("Mark", MakeCallback(&Counts::Marked, &counts));
    queue->TraceConnectWithoutContext("Drop", MakeCallback(&Counts::Dropped, &counts));
    DynamicCast<PointToPointNetDevice>(middle.Get(0))
        ->GetQueue()
        ->TraceConnectWithoutContext("Enqueue", MakeCallback(&Counts::Left, &counts));

    if (own != "device")
    {
        transmitter = middle.Get(0)->GetObject<NetDeviceQueueInterface>()->GetTxQueue(0);
        middle.Get(0)->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&Begins));
        middle.Get(0)->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&Ends));
    }

    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    const auto address = [&addresses](const NetDeviceContainer& devices) {
        const Ipv4Address second = addresses.Assign(devices).GetAddress(1);
        addresses.NewNetwork();
        return second;
    };
    address(middle);
    Ptr<UniformRandomVariable> starts = CreateObject<UniformRandomVariable>();
    std::vector<Ptr<PacketSink>> sinks;
    std::vector<uint64_t> before(count);
    for (uint32_t i = 0; i < count; i++)
    {
        address(JoinSender(senders.Get(i), routers.Get(0), jitter.empty() ? 0 : std::stod(jitter)));
        const Ipv4Address receiver = address(Join(routers.Get(1), receivers.Get(i), 1000, 0, "100000p"));
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), PORT));
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(receiver, PORT));
        source.SetAttribute("SendSize", UintegerValue(PAYLOAD));
        sinks.push_back(DynamicCast<PacketSink>(sink.Install(receivers.Get(i)).Get(0)));
        source.Install(senders.Get(i)).Start(Seconds(starts->GetValue(0, 1)));
        Simulator::Schedule(Seconds(FROM), [&before, sinks, i] { before[i] = sinks[i]->GetTotalRx(); });
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    Simulator::Stop(Seconds(TO));
    Simulator::Run();
    if (dctcp)
    {
        std::printf("%u,%s,%s,%s,", count, settings["mbps"].c_str(), settings["threshold_ms"].c_str(),
                    settings["seed"].c_str());
    }
    else if (!jitter.empty())
    {
        std::printf("%s,%s,%s,%u,%s,%s,", settings["discipline"].c_str(), settings["mbps"].c_str(),
                    settings["delay_ms"].c_str(), count, jitter.c_str(), settings["seed"].c_str());
    }
    else
    {
        std::printf("%s,%s,%u,%s,%s,", settings["discipline"].c_str(), cubic ? "cubic" : "sack", count, own.c_str(),
                    settings["seed"].c_str());
    }
    for (uint32_t i = 0; i < count; i++)
    {
        std::printf("%s%.5f", i ? ";" : "", double(sinks[i]->GetTotalRx() - before[i]) * 8 / (TO - FROM) / 1e6);
    }
    std::printf(",%.4f,%lu,%lu", counts.waited / double(counts.gone) * 1e3, counts.dropped, counts.gone);
    dctcp ? std::printf(",%lu\n", counts.marked) : std::printf("\n");
    transmitter = nullptr;
    Simulator::Destroy();
    return 0;
}
